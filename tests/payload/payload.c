/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What tests run in a container where a shell cannot do it: static, so that any root will do. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

#define TIOCL_PASTE 3

static int print_size(const char *word) {
        struct winsize size;

        if (ioctl(STDIN_FILENO, TIOCGWINSZ, &size) < 0)
                return 1;
        (void) printf("%s%u %u\n", word, size.ws_row, size.ws_col);
        return fflush(stdout) == 0 ? 0 : 1;
}

/* Tells of each SIGWINCH; ends with the first line of input. */
static int follow_size(void) {
        sigset_t set;
        siginfo_t si;

        (void) sigemptyset(&set);
        (void) sigaddset(&set, SIGWINCH);
        (void) sigaddset(&set, SIGTERM);
        (void) sigprocmask(SIG_BLOCK, &set, NULL);
        if (print_size("ready ") != 0)
                return 1;
        while (sigwaitinfo(&set, &si) == SIGWINCH)
                if (print_size("winch ") != 0)
                        return 1;
        return 0;
}

/* As login and getty do: everybody's descriptors of the terminal are dead, and the session goes on with new ones. */
static int hang_up(void) {
        char line[64];
        ssize_t n;
        int fd;

        if (signal(SIGHUP, SIG_IGN) == SIG_ERR || vhangup() < 0) {
                (void) printf("vhangup: %s\n", strerror(errno));
                return 1;
        }
        fd = open("/dev/console", O_RDWR);
        if (fd < 0 || dup2(fd, 0) < 0 || dup2(fd, 1) < 0 || dup2(fd, 2) < 0)
                return 2;
        (void) printf("after\n");
        (void) fflush(stdout);
        n = read(STDIN_FILENO, line, sizeof(line) - 1);
        if (n <= 0)
                return 3;
        (void) printf("got %.*s", (int) n, line);
        (void) fflush(stdout);
        return print_size("size ");
}

/* Types into a terminal that is not the own one. Says for each way whether the kernel let it. */
static int inject(const char *typed) {
        int fds[] = { 0, 1, 2, open("/dev/tty", O_RDWR) };

        for (size_t i = 0; i < sizeof(fds) / sizeof(*fds); i++) {
                char paste = TIOCL_PASTE;
                const char *p = typed;

                while (*p && ioctl(fds[i], TIOCSTI, p) == 0)
                        p++;
                (void) fprintf(stderr, "%d:%s ", fds[i], *p ? "refused" : "typed");
                (void) ioctl(fds[i], TIOCLINUX, &paste);
        }
        return 0;
}

/* Catches every process that appears, and looks whether through it there is a way to this path of the host's. Ends with
 * the input; tells of each success. */
static int snoop(const char *path) {
        static const char *const ways[] = { "root", "cwd",  "cwd/..", "fd/3", "fd/4",
                                            "fd/5", "fd/6", "fd/7",   "fd/8" };
        struct pollfd input = { .fd = STDIN_FILENO, .events = POLLIN };
        unsigned long seen = 0;

        (void) printf("ready\n");
        (void) fflush(stdout);
        while (poll(&input, 1, 0) == 0) {
                DIR *proc = opendir("/proc");

                for (struct dirent *entry; proc && (entry = readdir(proc));) {
                        int pid = atoi(entry->d_name);
                        char name[4096];

                        if (pid <= 1 || kill(pid, SIGSTOP) < 0)
                                continue;
                        seen++;
                        for (size_t i = 0; i < sizeof(ways) / sizeof(ways[0]); i++) {
                                (void) snprintf(name, sizeof(name), "/proc/%d/%s%s", pid, ways[i], path);
                                if (access(name, F_OK) == 0)
                                        (void) printf("GOT %s\n", name);
                        }
                        (void) kill(pid, SIGCONT);
                }
                if (proc)
                        (void) closedir(proc);
        }
        (void) printf("%s\n", seen > 0 ? "seen" : "blind");
        return fflush(stdout) == 0 ? 0 : 1;
}

/* Ends by a signal of the kernel's own, which a PID 1 does not survive. */
static int fault(const char *kind) {
        if (strcmp(kind, "segv") == 0) {
                volatile char *page = mmap(NULL, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

                return page[0];
        } else if (strcmp(kind, "ill") == 0)
                __builtin_trap();
        else if (strcmp(kind, "bus") == 0) {
                /* Beyond the end of a file. */
                int fd = memfd_create("empty", MFD_CLOEXEC);
                volatile char *page = mmap(NULL, 4096, PROT_READ, MAP_SHARED, fd, 0);

                return page[0];
        }
        return 99;
}

int main(int argc, char *argv[]) {
        const char *verb = argc > 1 ? argv[1] : "", *argument = argc > 2 ? argv[2] : "";

        if (strcmp(verb, "size") == 0)
                return print_size("");
        if (strcmp(verb, "follow-size") == 0)
                return follow_size();
        if (strcmp(verb, "hang-up") == 0)
                return hang_up();
        if (strcmp(verb, "inject") == 0)
                return inject(argument);
        if (strcmp(verb, "snoop") == 0)
                return snoop(argument);
        if (strcmp(verb, "fault") == 0)
                return fault(argument);
        return 98;
}
