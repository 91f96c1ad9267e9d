/* The program of the scenario `exec`: it ends at once. */
int main(void) { return 0; }
