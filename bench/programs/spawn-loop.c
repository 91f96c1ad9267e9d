/*
 * What can be had at most: starts a program again and again and waits for it, in so many threads, for so many seconds, and prints
 * how often. Arguments: the program, the seconds, the threads.
 */
#include <pthread.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <time.h>

static char *program;
static double end;

static double now(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return time.tv_sec + time.tv_nsec / 1e9;
}

static void *loop(void *given) {
  long runs = 0;
  char *args[] = {program, NULL}, *environment[] = {NULL};
  (void)given;
  for (; now() < end; runs++) {
    pid_t child;
    if (posix_spawn(&child, program, NULL, NULL, args, environment)) exit(1);
    int status;
    waitpid(child, &status, 0);
  }
  return (void *)runs;
}

int main(int count, char **args) {
  if (count < 4) return 2;
  program = args[1];
  end = now() + atof(args[2]);
  int threads = atoi(args[3]);
  pthread_t all[64];
  long runs = 0;
  for (int i = 0; i < threads; i++) pthread_create(&all[i], NULL, loop, NULL);
  for (int i = 0; i < threads; i++) {
    void *own;
    pthread_join(all[i], &own);
    runs += (long)own;
  }
  printf("%ld\n", runs);
  return 0;
}
