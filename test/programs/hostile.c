/*
 * A program that does what programs must not get away with: the first argument says what. Compiled by tests where there is a
 * compiler; without any library but that of C.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

/* Closed when a process is there that was told to stay. */
static int told = -1;

/* Says that it is there and stays, with the file open: whoever reads from it sees its end when this process is gone. */
static void stay(const char *fifo) {
  int there = open(fifo, O_WRONLY);
  if (there < 0) _exit(90);
  if (write(there, "up\n", 3) != 3) _exit(91);
  if (told >= 0) close(told);
  for (;;) pause();
}

/* A process that is in no group, session or family of this one, and does not want to be found. */
static void daemonize(const char *fifo) {
  int line[2];
  char nothing;
  if (pipe(line) != 0) _exit(92);
  if (fork() == 0) {
    close(line[0]);
    told = line[1];
    setsid();
    if (fork() == 0) {
      setsid();
      prctl(PR_SET_DUMPABLE, 0);
      prctl(PR_SET_NAME, ") Z 1 (");
      clearenv();
      signal(SIGTERM, SIG_IGN);
      stay(fifo);
    }
    _exit(0);
  }
  /* Ends when the one that stays has closed its end. */
  close(line[1]);
  if (read(line[0], &nothing, 1) != 0) _exit(93);
}

int main(int count, char **args) {
  const char *what = count > 1 ? args[1] : "";
  const char *name = count > 2 ? args[2] : "";
  if (!strcmp(what, "daemon")) {
    daemonize(name);
    /* Stays as well, or leaves the other one behind. */
    if (count > 3) stay(args[3]);
    return 0;
  }
  if (!strcmp(what, "stay")) {
    signal(SIGTERM, SIG_IGN);
    stay(name);
  }
  if (!strcmp(what, "forks")) {
    /* Until it may not any more: each process of the tree starts others. */
    for (;;) {
      pid_t child = fork();
      if (child < 0) printf("%d\n", errno == EAGAIN);
      if (child < 0) return 0;
      if (child == 0) pause();
    }
  }
  if (!strcmp(what, "memory")) {
    for (;;) {
      char *piece = malloc(1 << 20);
      if (!piece) return 3;
      memset(piece, 1, 1 << 20);
      usleep(500);
    }
  }
  if (!strcmp(what, "disk")) {
    char piece[65536] = {1};
    for (int number = 0;; number++) {
      char path[64];
      snprintf(path, sizeof path, "part-%d", number);
      int file = open(path, O_WRONLY | O_CREAT, 0600);
      for (int i = 0; i < 16; i++)
        if (write(file, piece, sizeof piece) < 0) return 3;
      close(file);
      usleep(500);
    }
  }
  if (!strcmp(what, "flood")) {
    char piece[65536];
    memset(piece, 'x', sizeof piece);
    for (int i = 0; i < 4096; i++)
      if (write(1, piece, sizeof piece) < 0) return 3;
    return 0;
  }
  if (!strcmp(what, "network")) {
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons(atoi(name))};
    inet_pton(AF_INET, "127.0.0.1", &address.sin_addr);
    int line = socket(AF_INET, SOCK_STREAM, 0);
    int failed = line < 0 || connect(line, (struct sockaddr *)&address, sizeof address) < 0;
    printf("\"%s\"\n", failed ? "refused" : "connected");
    return 0;
  }
  if (!strcmp(what, "read")) {
    char piece[256];
    int file = open(name, O_RDONLY);
    ssize_t bytes = file < 0 ? -1 : read(file, piece, sizeof piece);
    printf("\"%s\"\n", bytes < 0 ? "refused" : "read");
    return 0;
  }
  if (!strcmp(what, "traces")) {
    printf("\"%s\"\n", ptrace(PTRACE_TRACEME, 0, NULL, NULL) < 0 ? "refused" : "traced");
    return 0;
  }
  if (!strcmp(what, "kills-parent")) {
    kill(getppid(), SIGKILL);
    usleep(50000);
    kill(-1, SIGKILL);
    return 0;
  }
  if (!strcmp(what, "itself")) {
    raise(atoi(name));
    return 0;
  }
  if (!strcmp(what, "half-json")) {
    printf("{\"half\": [1, 2");
    return 0;
  }
  if (!strcmp(what, "spins"))
    for (;;) {
    }
  return 2;
}
