#!/usr/bin/env bash
# Draws the clusters of configs/topologies/ into docs/pictures/, where the pages of docs/ show them.
#   scripts/draw_topologies.sh [NETSIM]    default: build/release/netsim
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
netsim=${1:-build/release/netsim}
for config in configs/topologies/*.yaml; do
  name=$(basename "$config" .yaml)
  [[ $name == shift ]] || "$netsim" --config "$config" --draw "docs/pictures/$name.svg"
done
