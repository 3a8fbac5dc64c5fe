#!/usr/bin/env bash
# Runs a command where Wine can run programs of Windows: SLIPWAY_TEST_WINE is the program
# that does, and its drive C is in build/.cache/wine. Wine is installed if it is missing.
# What runs there is ended afterwards.
#
#   build/ci/wine.sh COMMAND…
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
"$here/setup.sh" wine
# Debian's package of the 64-bit programs alone has them here.
export PATH=$PATH:/usr/lib/wine
SLIPWAY_TEST_WINE=$(command -v wine64)
export SLIPWAY_TEST_WINE WINEPREFIX=$here/../.cache/wine WINEARCH=win64 WINEDEBUG=-all
# Neither .NET nor a browser is asked for, and nothing is shown.
export WINEDLLOVERRIDES='mscoree,mshtml=' DISPLAY=
mkdir -p "$WINEPREFIX"
WINEPREFIX=$(cd "$WINEPREFIX" && pwd)

# Programs of Go draw their random numbers from a library that Wine has only since version 9. This one, of one
# function, asks that of older versions of Windows.
library=$WINEPREFIX/drive_c/windows/system32/bcryptprimitives.dll
make_library() {
    local dir tools=x86_64-w64-mingw32
    dir=$(mktemp -d)
    local -x TMPDIR=$dir # in which its tools leave files
    cat >"$dir/prng.s" <<'ASM'
.text
.globl ProcessPrng
ProcessPrng:
 subq $40,%rsp
 call *__imp_SystemFunction036(%rip)
 addq $40,%rsp
 movl $1,%eax
 ret
.globl DllMain
DllMain:
 movl $1,%eax
 ret
ASM
    printf 'LIBRARY advapi32.dll\nEXPORTS\nSystemFunction036\n' >"$dir/old.def"
    printf 'LIBRARY bcryptprimitives.dll\nEXPORTS\nProcessPrng\n' >"$dir/new.def"
    $tools-dlltool -d "$dir/old.def" -l "$dir/old.a"
    $tools-as "$dir/prng.s" -o "$dir/prng.o"
    $tools-ld -shared --subsystem windows -e DllMain "$dir/new.def" "$dir/prng.o" "$dir/old.a" -o "$library"
    rm -r "$dir"
}

# finish ends what runs, and removes the folder in which that met, which Debian's Wine keeps.
finish() {
    wineserver -k >/dev/null 2>&1 9>&- || true
    local met
    met=$(cat "$WINEPREFIX/wineserver" 2>/dev/null) || return 0
    [[ ! $met =~ ^wine-[A-Za-z0-9]+$ ]] || rm -rf "/tmp/$met"
    rm -f "$WINEPREFIX/wineserver"
}
# One command has it at a time.
exec 9>"$WINEPREFIX.user"
flock 9
trap finish EXIT
# What serves all programs of Wine holds neither the output of a command nor the lock.
finish
wineserver -p </dev/null >/dev/null 2>&1 9>&-
[ -e "$WINEPREFIX/system.reg" ] || "$SLIPWAY_TEST_WINE" wineboot --init </dev/null >"$WINEPREFIX/boot.log" 2>&1 9>&-
[ -e "$library" ] || make_library
"$@" 9>&-
