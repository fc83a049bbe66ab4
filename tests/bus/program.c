/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The programs that the fixture runs. They die with the test, should it be killed. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>

#include <setjmp.h>

#include <cmocka.h>

#include "tests/bus/fixture.h"
#include "util/cleanup.h"

static int on_program_ended(sd_event_source *source, const siginfo_t *si, void *userdata) {
        Program *p = userdata;

        p->status = *si;
        p->ended = true;
        return 0;
}

static int on_program_output(sd_event_source *source, int fd, uint32_t revents, void *userdata) {
        Program *p = userdata;
        char buffer[4097];
        ssize_t n;

        n = read(fd, buffer, sizeof(buffer) - 1);
        if (n > 0) {
                buffer[n] = 0;
                text_append(&p->text, "%s", buffer);
        } else if (n == 0)
                p->io = sd_event_source_disable_unref(p->io);
        return 0;
}

/* In the child; what fails here shows as exit status 127. */
static void become(const char *const *argv, int output, int listen_fd) {
        sigset_t none;

        (void) prctl(PR_SET_PDEATHSIG, SIGKILL);
        (void) sigemptyset(&none);
        if (sigprocmask(SIG_SETMASK, &none, NULL) < 0 || dup2(output, 1) < 0 || dup2(output, 2) < 0)
                _exit(127);
        if (listen_fd >= 0) {
                char pid[16];

                (void) snprintf(pid, sizeof(pid), "%d", getpid());
                if (dup2(listen_fd, 3) < 0 || (listen_fd == 3 && fcntl(3, F_SETFD, 0) < 0) ||
                    setenv("LISTEN_FDS", "1", 1) < 0 || setenv("LISTEN_PID", pid, 1) < 0)
                        _exit(127);
        }
        (void) execvp(argv[0], (char *const *) argv);
        _exit(127);
}

void program_start_listening(Fixture *f, Program *p, int listen_fd, const char *const *argv) {
        _cleanup_fd_ int writer = -EBADF;

        *p = (Program) {};
        make_pipe(&p->fd, &writer);
        p->pid = fork();
        assert_true(p->pid >= 0);
        if (p->pid == 0)
                become(argv, writer, listen_fd);
        assert_true(sd_event_add_child(f->event, &p->child, p->pid, WEXITED, on_program_ended, p) >= 0);
        assert_true(sd_event_add_io(f->event, &p->io, p->fd, EPOLLIN, on_program_output, p) >= 0);
}

void program_start(Fixture *f, Program *p, const char *const *argv) {
        program_start_listening(f, p, -EBADF, argv);
}

void program_done(Program *p) {
        if (p->pid == 0)
                return;
        if (!p->ended) {
                (void) kill(p->pid, SIGKILL);
                (void) waitpid(p->pid, NULL, 0);
        }
        (void) sd_event_source_disable_unref(p->child);
        (void) sd_event_source_disable_unref(p->io);
        (void) fd_close(p->fd);
        free(p->text);
        *p = (Program) {};
}

char *program_run(Fixture *f, int *ret_status, const char *const *argv) {
        static Program p; /* the loop may still know it after a test that failed here */
        char *text;

        program_start(f, &p, argv);
        fixture_until(f, p.ended && !p.io);
        assert_int_equal(p.status.si_code, CLD_EXITED);
        *ret_status = p.status.si_status;
        text = TAKE_PTR(p.text);
        program_done(&p);
        return text ?: strdup("");
}

int client_as_user(Fixture *f, uid_t uid, int (*do_it)(sd_bus *bus, void *userdata), void *userdata) {
        sigset_t none;
        sd_bus *bus;
        static Program p;
        int status;

        p = (Program) { .fd = -EBADF };
        p.pid = fork();
        assert_true(p.pid >= 0);
        if (p.pid == 0) {
                (void) prctl(PR_SET_PDEATHSIG, SIGKILL);
                (void) sigemptyset(&none);
                if (sigprocmask(SIG_SETMASK, &none, NULL) < 0 || setresgid(uid, uid, uid) < 0 ||
                    setresuid(uid, uid, uid) < 0 || sd_bus_open_system(&bus) < 0)
                        _exit(101);
                status = do_it(bus, userdata);
                (void) sd_bus_flush_close_unref(bus);
                _exit(status);
        }
        assert_true(sd_event_add_child(f->event, &p.child, p.pid, WEXITED, on_program_ended, &p) >= 0);
        fixture_until(f, p.ended);
        assert_int_equal(p.status.si_code, CLD_EXITED);
        status = p.status.si_status;
        program_done(&p);
        return status;
}
