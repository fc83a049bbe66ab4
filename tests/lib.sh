# shellcheck shell=bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# TAP for shell tests. A test waits for what it expects, with a deadline; it never sleeps and hopes.
# The caller ends with `finish`.

tap_count=0
tap_failed=0

# shellcheck disable=SC2034
tests_dir=$(realpath "$(dirname "${BASH_SOURCE[0]}")")

diag() {
        local text=$*
        echo "# ${text//$'\n'/$'\n'# }"
}

pass() {
        tap_count=$((tap_count + 1))
        echo "ok $tap_count - $1"
}

# fail DESCRIPTION [WHAT WAS SEEN]
fail() {
        tap_count=$((tap_count + 1))
        tap_failed=$((tap_failed + 1))
        echo "not ok $tap_count - $1"
        [[ -z ${2:-} ]] || diag "$2"
}

# ok DESCRIPTION COMMAND...: the command succeeds.
ok() {
        local what=$1 output
        shift
        if output=$("$@" 2>&1); then
                pass "$what"
        else
                fail "$what" "$* exited with $?: $output"
        fi
}

# not_ok DESCRIPTION COMMAND...: it fails, of itself and not by a signal.
not_ok() {
        local what=$1 output r=0
        shift
        output=$("$@" 2>&1) || r=$?
        if ((r > 0 && r < 128)); then
                pass "$what"
        else
                fail "$what" "$* exited with $r: $output"
        fi
}

# is DESCRIPTION GOT WANTED
is() {
        if [[ $2 == "$3" ]]; then
                pass "$1"
        else
                fail "$1" "got:    $2
wanted: $3"
        fi
}

# isnt DESCRIPTION GOT UNWANTED
isnt() {
        if [[ $2 != "$3" ]]; then
                pass "$1"
        else
                fail "$1" "got: $2"
        fi
}

# like DESCRIPTION TEXT PATTERN: an extended regular expression.
like() {
        if [[ $2 =~ $3 ]]; then
                pass "$1"
        else
                fail "$1" "got:    $2
wanted: $3"
        fi
}

# wait_for SECONDS COMMAND...: until the command succeeds, looking again every 50 ms; fails at the deadline.
wait_for() {
        local end=$((SECONDS + $1)) fd
        shift
        exec {fd}<> <(:)
        until "$@"; do
                if ((SECONDS > end)); then
                        exec {fd}>&-
                        return 1
                fi
                read -r -t 0.05 -u "$fd" || :
        done
        exec {fd}>&-
}

# expect_within SECONDS DESCRIPTION COMMAND...: the command succeeds before the deadline. Functions may be given.
expect_within() {
        local seconds=$1 what=$2
        shift 2
        if wait_for "$seconds" "$@" >/dev/null 2>&1; then
                pass "$what"
        else
                fail "$what" "not within $seconds s: $*: $("$@" 2>&1)"
        fi
}

# not_applicable DESCRIPTION PROBE: returns 0, having reported the test, when tests/host-lacks says that the host
# lacks it. Nothing else excuses a test from running.
not_applicable() {
        "$tests_dir/host-lacks" "$2" || return 1
        tap_count=$((tap_count + 1))
        echo "ok $tap_count - $1 # SKIP not applicable: $2"
}

# skip_all REASON: ends the script. A failure where everything must work.
skip_all() {
        if [[ -n ${BERTH_MUST_WORK:-} ]]; then
                echo "1..1"
                echo "not ok 1 - $1"
                exit 1
        fi
        echo "1..0 # SKIP $1"
        exit 0
}

finish() {
        echo "1..$tap_count"
        ((tap_failed == 0))
        exit
}
