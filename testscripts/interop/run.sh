#!/usr/bin/env bash
# Compares the tables that weir wrote with what independent engines read.
#   run.sh light   the Python package deltalake (delta-rs), and the npm package chdb (ClickHouse) when npm is there
#   run.sh full    PySpark with Delta from Maven, too, when Java is there, and Spark's own AUTO CDC as the peer of ours
# Then lets them change and look after tables of every protocol feature (tables.py).
# Expects a built build/weir and a demo that ran in build/demo.
set -euo pipefail
mode=${1:-light}
here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
work=$root/build/interop
mkdir -p "$work"

if [ ! -x "$work/venv/bin/python" ] || ! cmp -s "$here/requirements.txt" "$work/venv/installed.txt"; then
  if ! command -v python3 >/dev/null || ! python3 -m venv "$work/venv" || ! "$work/venv/bin/pip" install -q -r "$here/requirements.txt"; then
    rm -rf "$work/venv"
    # A machine without the engine has proved nothing: in CI that is a failure.
    echo "interop: SKIPPED: python3 with venv and a package registry are needed" >&2
    [ "${CI:-}" = true ] && exit 1
    exit 0
  fi
  cp "$here/requirements.txt" "$work/venv/installed.txt"
fi

# A project with what the demo lacks: every type, partitions, more commits than
# between two checkpoints, a column that comes later, a replaced table.
rm -rf "$work/project"
mkdir -p "$work/project/landing"
cp "$here"/project/weir.yaml "$here"/project/tables.sql "$work/project/"
"$work/venv/bin/python" "$here/landing.py" "$work/project/landing" 0 13
(cd "$work/project" && "$root/build/weir" run >/dev/null)
"$work/venv/bin/python" "$here/landing.py" "$work/project/landing" 13 15 --new-column
(cd "$work/project" && "$root/build/weir" run >/dev/null && "$root/build/weir" run --full-refresh dev.typed.replaced --yes >/dev/null)

engines=deltalake
if command -v npm >/dev/null; then
  mkdir -p "$work/node"
  cp "$here/package.json" "$here/chdb.mjs" "$work/node/"
  if (cd "$work/node" && npm install --silent --no-audit --no-fund >/dev/null 2>&1); then
    engines=deltalake,chdb
  else
    echo "interop: SKIPPED chdb: npm could not install it" >&2
  fi
else
  echo "interop: SKIPPED chdb: npm is not here" >&2
fi
for project in "$root/build/demo" "$work/project"; do
  "$work/venv/bin/python" "$here/compare.py" --weir "$root/build/weir" --project "$project" --engines "$engines" --node "$work/node"
done

writers=$engines
if [ "$mode" = full ]; then
  if ! command -v java >/dev/null; then
    echo "interop: SKIPPED spark: java is not here" >&2
  elif ! "$work/venv/bin/pip" install -q -r "$here/requirements-spark.txt"; then
    echo "interop: SKIPPED spark: pip could not install pyspark" >&2
  else
    writers=$engines,spark
  fi
else
  echo "interop: spark is left to make interop"
fi
(cd "$root" && go build -o "$work/tables" ./testscripts/interop/tables)
"$work/venv/bin/python" "$here/tables.py" --program "$work/tables" --dir "$work/of-features" --engines "$writers" --node "$work/node"

# Change feeds: the targets of AUTO CDC through every engine, and against Spark's own.
if [ "$mode" = full ]; then
  peer=()
  if [[ $writers == *spark* ]]; then
    if [ ! -x "$work/venv-autocdc/bin/python" ] || ! cmp -s "$here/requirements-autocdc.txt" "$work/venv-autocdc/installed.txt"; then
      if python3 -m venv "$work/venv-autocdc" && "$work/venv-autocdc/bin/pip" install -q -r "$here/requirements-autocdc.txt"; then
        cp "$here/requirements-autocdc.txt" "$work/venv-autocdc/installed.txt"
      else
        rm -rf "$work/venv-autocdc"
        echo "interop: SKIPPED Spark's AUTO CDC: pip could not install its pyspark" >&2
      fi
    fi
    [ -x "$work/venv-autocdc/bin/python" ] && peer=(--spark "$work/venv-autocdc/bin/python")
  fi
  "$work/venv/bin/python" "$here/cdc/run.py" --weir "$root/build/weir" --dir "$work/cdc" --engines "$writers" --node "$work/node" "${peer[@]}"
fi
"$work/venv/bin/python" "$here/cdc/foreign.py" --weir "$root/build/weir" --dir "$work/cdc-foreign" --engines "$writers"
