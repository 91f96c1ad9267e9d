/* Prints when it began, in milliseconds since 1970. */
#include <stdio.h>
#include <time.h>

int main(void) {
  struct timespec time;
  clock_gettime(CLOCK_REALTIME, &time);
  printf("%lld.%03ld\n", time.tv_sec * 1000LL + time.tv_nsec / 1000000, time.tv_nsec / 1000 % 1000);
  return 0;
}
