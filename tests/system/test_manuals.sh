#!/usr/bin/env bash
# The manuals name the options that the programs have, all of them and no other; installed files are where they belong.
set -u
cd "$(dirname "$0")/../.." || exit 2
build=${BUILD:-build}
passed=0 failed=0
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT

check() { # name wanted found
    if [ "$2" = "$3" ]; then
        passed=$((passed + 1))
    else
        failed=$((failed + 1))
        echo "FAILED: $1"
        diff <(echo "$2") <(echo "$3")
    fi
}

# Options as a manual has them in its list, `.It Fl -name`; `.It Fl o` is -o.
manual_options() { sed -nE 's/^\.It Fl ([^ ]+).*/-\1/p' "$1" | sort -u; }
help_options() { sed -nE 's/^ +(--?[a-z][a-z0-9-]*)( .*|$)/\1/p' | sort -u; }

check "proofd.8 and proofd --help" "$("$build/proofd" --help | help_options)" "$(manual_options doc/man/proofd.8)"
: >"$tmp/empty"
check "proofd.conf.5 and proofd --check-config" \
    "$("$build/proofd" --config "$tmp/empty" --check-config | sed -nE 's/^([a-z_]+) =.*/\1/p' | sort)" \
    "$(sed -nE 's/^\.It Ic ([a-z_]+)$/\1/p' doc/man/proofd.conf.5 | sort)"
grpc=no
[ ! -x "$build/proofd-grpc" ] || grpc=yes
if [ $grpc = yes ]; then
    check "proofd-grpc.8 and proofd-grpc --help" "$("$build/proofd-grpc" --help | help_options)" "$(manual_options doc/man/proofd-grpc.8)"
    check "its keys are its options" "$("$build/proofd-grpc" --config "$tmp/empty" --check-config | sed -nE 's/^([a-z_]+) =.*/--\1/p' | tr _ - | sort)" \
        "$("$build/proofd-grpc" --help | help_options | grep -vxE -e '--(config|check-config|version|help)')"
fi
commands=$("$build/proofctl" --help | sed -nE 's/^  ([a-z]+) .*/\1/p')
check "commands of proofctl.1 and proofctl --help" "$(echo "$commands" | sort)" \
    "$(sed -nE 's/^\.It Ic ([a-z]+) .*/\1/p' doc/man/proofctl.1 | sort)"
check "options of proofctl.1 and proofctl COMMAND --help" \
    "$( (for c in $commands; do "$build/proofctl" "$c" --help; done | help_options; echo --version) | sort -u)" \
    "$(manual_options doc/man/proofctl.1)"
# The synopsis of each command has the options of its help.
for c in $commands; do
    check "synopsis of $c" "$("$build/proofctl" "$c" --help | help_options | grep -v -e --help)" \
        "$(awk -v c="$c" '/^\.Sh DESCRIPTION/ {exit} $1 == ".Ic" {on = $2 == c} on' doc/man/proofctl.1 |
            sed -nE 's/^\.(Op )?Fl ([^ ]+).*/-\2/p' | sort -u)"
done
packages() { sed -nE "s/^$1=\"(.*)\"\$/\1/p" tests/lib/packages.sh; }
for list in "$(packages build)" "g++ $(packages grpc)"; do
    check "doc/dependencies.md names the packages that are built with" "$list" \
        "$(sed -nE 's/^    sudo apt-get install (.*)/\1/p' doc/dependencies.md | grep -xF -- "$list")"
done
if command -v groff >/dev/null; then
    for m in doc/man/*.[1-8]; do
        check "$m formats without a warning" "" "$(groff -mdoc -Tutf8 -ww -z "$m" 2>&1)"
    done
fi

with_grpc() { # name: where gRPC was there to build with
    [ $grpc = no ] || printf '%s\n' "$1"
}
make -s install NVCC= BUILD="$build" DESTDIR="$tmp" PREFIX=/usr >/dev/null 2>"$tmp/err" || cat "$tmp/err"
check "files of make install" "$(grep . <<END | sort
usr/bin/proofctl
usr/include/proofd/abi.h
usr/lib/systemd/system/proofd.service
usr/lib/sysusers.d/proofd.conf
usr/lib/tmpfiles.d/proofd.conf
usr/lib/udev/rules.d/60-proof.rules
usr/sbin/proofd
usr/sbin/proofd-engine
usr/share/bash-completion/completions/proofctl
usr/share/man/man1/proofctl.1
usr/share/man/man4/proof.4
usr/share/man/man5/proofd.conf.5
usr/share/man/man7/proof.7
usr/share/man/man8/proofd-engine.8
usr/share/man/man8/proofd.8
usr/share/proofd/grafana-dashboard.json
usr/share/proofd/prometheus-rules.yml
$(with_grpc usr/lib/systemd/system/proofd-grpc.service)
$(with_grpc usr/lib/sysusers.d/proofd-grpc.conf)
$(with_grpc usr/sbin/proofd-grpc)
$(with_grpc usr/share/man/man8/proofd-grpc.8)
END
)" "$(cd "$tmp" && find usr -type f | sort)"
# What is completed is what the programs know.
completes() { # words of a line; the last one is to be completed
    PATH=$tmp/usr/bin:$tmp/usr/sbin:$PATH bash --norc -c '. "$0"; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _$1; printf "%s\n" "${COMPREPLY[@]}"' \
        "$tmp/usr/share/bash-completion/completions/proofctl" "$@"
}
check "commands that are completed" "$(echo "$commands" | sort)" "$(completes proofctl "" | grep -v -e '^-' -e '^help$' | sort)"
check "one of them" submit "$(completes proofctl sub)"
check "options of a command" "$("$build/proofctl" wait --help | help_options | sort)" "$(completes proofctl wait -- | sort)"
check "options of proofd" "$("$build/proofd" --help | help_options | sort)" "$(completes proofd -- | sort)"
mkdir -p "$tmp/m/jobs"
touch "$tmp/m/jobs/"{one,one.status,two.status}
check "names of jobs" "one two" "$(completes proofctl cancel --mount "$tmp/m" "" | sort | xargs)"

# What alerts and dashboard ask for is in the file metrics.
known=$(awk '/^\.Sh METRICS/,/^\.Sh PARAMETERS/' doc/man/proofd.8 | grep -o 'proofd_[a-z_]*' | sort -u)
for f in daemon/monitoring/*; do
    check "metrics of $f" "" "$(grep -o 'proofd_[a-z_]*' "$f" | sort -u | grep -vxF "$known")"
done
check "the dashboard is JSON" proofd "$(jq -r .uid daemon/monitoring/grafana-dashboard.json)"
if command -v promtool >/dev/null; then
    check "the rules are Prometheus'" "" "$(promtool check rules daemon/monitoring/prometheus-rules.yml 2>&1 >/dev/null)"
fi

version=$("$build/proofd" --version | cut -d' ' -f2)
for p in bin/proofctl sbin/proofd sbin/proofd-engine; do
    check "$p --version" "$(basename $p) $version" "$("$tmp/usr/$p" --version)"
done
echo "$passed passed, $failed failed, 0 skipped"
[ "$failed" -eq 0 ]
