# Sourced by the other scripts: the one way in which an environment of this project is made.
#
#   NORTHBOUND_VENV         where Northbound's own environment is (default: .venv beside this folder)
#   NORTHBOUND_VENV_PYTHON  the interpreter it is made with (default: the newest suitable one found)

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
venv=${NORTHBOUND_VENV:-$root/.venv}

say() { printf '%s: %s\n' "$(basename "$0")" "$*" >&2; }

# usable_python COMMAND MINOR... : whether it runs (a pyenv shim may be there and not run), can make an environment,
# and is Python 3 of one of the minor versions.
usable_python() {
  local command=$1
  shift
  "$command" -c 'import ensurepip, sys, venv
sys.exit(sys.version_info[0] != 3 or str(sys.version_info[1]) not in sys.argv[1:])' "$@" >/dev/null 2>&1
}

# find_python MINOR... : prints the first command that is usable, tried in the order given. pyenv's own versions count
# even where its shims do not run.
find_python() {
  local minor candidate
  for minor in "$@"; do
    for candidate in "python3.$minor" "${PYENV_ROOT:-$HOME/.pyenv}"/versions/"3.$minor".*/bin/"python3.$minor"; do
      if usable_python "$candidate" "$minor"; then
        command -v "$candidate"
        return
      fi
    done
  done
  if usable_python python3 "$@"; then
    command -v python3
    return
  fi
  say "no Python found that runs, has venv and ensurepip, and is one of: ${*/#/3.}"
  return 1
}

# ensure_northbound [serving] : makes $venv, or brings it up to date when pyproject.toml or what is compiled changed. With
# all that the checks need, unless it is for serving alone: that is half the download.
ensure_northbound() {
  local stamp made python needs=(--group dev)
  [ "${1-}" != serving ] || needs=()
  # one maker at a time: two scripts may be started side by side
  exec 8<"$root/pyproject.toml"
  flock 8
  stamp="$root $(cat "$root/pyproject.toml" "$root"/adapters/{inbound/http/openai,outbound/vllm_engine}/_*.c | cksum)"
  made=$(cat "$venv/.northbound-stamp" 2>/dev/null) || true
  if [ "$made" != "$stamp" ] && { [ ${#needs[@]} != 0 ] || [ "$made" != "$stamp for serving" ]; }; then
    say "preparing $venv"
    if ! "$venv/bin/python" -c '' 2>/dev/null; then
      python=${NORTHBOUND_VENV_PYTHON:-$(find_python 14 13 12 11)}
      "$python" -m venv --clear "$venv"
    fi
    # pip knows dependency groups from 25.1 on
    [ ${#needs[@]} = 0 ] || "$venv/bin/python" -m pip install -qq --upgrade 'pip>=25.1'
    # The extra is empty before Python 3.12. Compiling all of what is installed takes longer than installing it.
    if ! (cd "$root" && "$venv/bin/python" -m pip install -qq --no-compile --editable '.[local]' ${needs[@]+"${needs[@]}"}); then
      say "pip could not install what is needed into $venv; it asks the package index that it is set up for"
      return 1
    fi
    [ ${#needs[@]} != 0 ] || stamp="$stamp for serving"
    printf '%s\n' "$stamp" >"$venv/.northbound-stamp"
  fi
  exec 8>&-
}
