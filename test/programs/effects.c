/*
 * The program of fault runs: writes its start and its end to a file that only grows, before anything else happens, so that what
 * it did is known whatever becomes of it. Arguments: the number of its order, how long it works in milliseconds, and
 * how many attempts fail. Its worker's name is in PUNCTUAL_URL, the folder of the files in EFFECTS.
 */
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static char path[4096], about[1024];

/* In one write, so that lines of several programs do not mix, and with what may be called in a handler of signals but snprintf. */
static void record(const char *kind, const char *result) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  char line[2048];
  int length = snprintf(line, sizeof line, "{\"kind\":\"%s\",%s,\"at\":%lld.%03ld,\"result\":%s,\"from\":null,\"program\":true}\n", kind, about,
                        now.tv_sec * 1000LL + now.tv_nsec / 1000000, now.tv_nsec / 1000 % 1000, result);
  int file = open(path, O_WRONLY | O_APPEND);
  if (file < 0 || write(file, line, length) != length) _exit(90);
  close(file);
}

static void stop(int number) {
  (void)number;
  record("end", "\"stopped\"");
  _exit(1);
}

int main(int count, char **args) {
  const char *url = getenv("PUNCTUAL_URL"), *folder = getenv("EFFECTS"), *job = getenv("PUNCTUAL_JOB_ID");
  const char *worker = url ? strstr(url, "worker=") : NULL;
  if (count < 4 || !worker || !folder || !job) return 91;
  long number = atol(args[1]), work = atol(args[2]), failures = atol(args[3]);
  long fence = atol(getenv("PUNCTUAL_FENCE")), attempt = atol(getenv("PUNCTUAL_ATTEMPT"));
  worker += strlen("worker=");
  snprintf(path, sizeof path, "%s/p-%s.effects", folder, worker);
  snprintf(about, sizeof about, "\"job\":\"%s\",\"n\":%ld,\"fence\":%ld,\"worker\":\"%s\",\"tenant\":\"default\"", job, number, fence,
           worker);
  record("start", "null");
  signal(SIGTERM, stop);
  struct timespec time = {work / 1000, work % 1000 * 1000000};
  nanosleep(&time, NULL);
  signal(SIGTERM, SIG_IGN);
  record("end", attempt <= failures ? "\"threw\"" : "\"returned\"");
  if (attempt <= failures) return 1;
  printf("{\"n\":%ld,\"fence\":%ld}\n", number, fence);
  return 0;
}
