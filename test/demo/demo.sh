#!/usr/bin/env bash
# The demonstration: demo.sh up | lab | down | stopped.
#   up    from nothing to an application that answers through a gateway of a real Kubernetes cluster on a local cloud
#   lab   only the local cloud with the node image in it, for working on Burano
#   down  takes down whatever of it runs
#   stopped  fails when anything of it runs or is left
# Everything it keeps lies in BURANO_LAB (default: build/lab). Each step looks at what is there first, so an interrupted run is
# simply started again.
set -euo pipefail
cd "$(dirname "$0")/../.."

build=$PWD/build
lab=${BURANO_LAB:-$build/lab}
image=${BURANO_NODE_IMAGE:-$build/node-image.tar}
cloud_port=${BURANO_CLOUD_PORT:-5050}
server_port=${BURANO_SERVER_PORT:-8082}
export OS_CLIENT_CONFIG_FILE=$lab/cloud/clouds.yaml
export BURANO_URL=http://127.0.0.1:$server_port

say() { printf '\n\033[1m%s\033[0m\n' "$*"; }
fail() {
  echo "demo: $*" >&2
  exit 1
}

phases=()
# phase NAME COMMAND…: runs the command and keeps how long it took.
phase() {
  local name=$1 start=$SECONDS
  shift
  say "== $name"
  "$@"
  phases+=("$(printf '%4d s  %s' $((SECONDS - start)) "$name")")
}

server_pid() {
  local pid
  pid=$(cat "$lab/server/pid" 2>/dev/null) || return 1
  [[ $(readlink "/proc/$pid/exe" 2>/dev/null) == "$build/burano"* ]] && echo "$pid"
}

port_is_free() { ! (exec 3<>"/dev/tcp/127.0.0.1/$1") 2>/dev/null; }

# estimate prints how long it will take: the seconds that each part took on two processors (docs/measurements.md, "The demonstration"), times how
# much slower this machine is, by the time for a hash of 256 MB.
estimate() {
  local seconds=30 pieces=${XDG_CACHE_HOME:-$HOME/.cache}/burano/image processors best=0 i began
  [[ -x $build/burano ]] || seconds=$((seconds + 180))
  if [[ ! -e $image ]]; then
    if compgen -G "$pieces/kubernetes-*" >/dev/null && compgen -G "$pieces/calico-*" >/dev/null; then seconds=$((seconds + 60)); else seconds=$((seconds + 355)); fi
  fi
  if ((seconds == 30)); then # nothing has to be built
    echo "about a minute"
    return
  fi
  for i in 1 2 3; do
    began=${EPOCHREALTIME/./}
    head --bytes 256M /dev/zero | sha256sum >/dev/null
    i=$((${EPOCHREALTIME/./} - began))
    ((best && best < i)) || best=$i
  done
  processors=$(nproc)
  seconds=$((seconds * best * 2 / (processors > 4 ? 4 : processors) / 600000))
  echo "about $(((seconds + 59) / 60)) minutes"
}

preflight() {
  cat <<TEXT
This takes $(estimate) on this machine. It will:
  - install Debian packages (runc, haproxy, mmdebstrap and the like; no service is started, nothing is removed)
  - build Burano, and from pinned sources Kubernetes, etcd, Calico and CoreDNS (the results are kept in $build and
    ${XDG_CACHE_HOME:-$HOME/.cache}/burano)
  - start a local cloud on 127.0.0.1:$cloud_port and Burano on 127.0.0.1:$server_port
  - start three servers: PRIVILEGED system containers, with a bridge blc-ext (10.88.0.0/24) and network namespaces blc-…
\`make demo-down\` stops and removes all of it, except the packages and what was built.
TEXT
  local problems=()
  ((EUID == 0)) || problems+=("this needs root (for network namespaces, mounts and system containers): run it with sudo or as root")
  command -v apt-get >/dev/null || problems+=("this is no Debian system (there is no apt-get): Debian 12 is what it was made for")
  command -v go >/dev/null || problems+=("Go is missing: install Go 1.26 or newer and put it on PATH")
  grep -qw overlay /proc/filesystems || modprobe overlay 2>/dev/null || problems+=("the kernel has no overlayfs")
  local memory disk
  memory=$(awk '/^MemAvailable/ { print int($2 / 1024 / 1024) }' /proc/meminfo)
  ((memory >= 4)) || problems+=("only $memory GiB of memory are free, 4 are needed")
  mkdir -p "$build"
  disk=$(df --output=avail --block-size=1G "$build" | tail -n 1 | tr -d ' ')
  if [[ ! -e $image ]]; then
    ((disk >= 12)) || problems+=("only $disk GB of disk are free below $build, 12 are needed")
  fi
  if [[ $(stat --file-system --format %T "$build") == overlayfs ]]; then
    problems+=("$build lies on an overlay file system, where servers cannot have their own: set BURANO_LAB to a folder on another one")
  fi
  [[ -e $lab/cloud ]] || port_is_free "$cloud_port" || problems+=("port $cloud_port is taken: set BURANO_CLOUD_PORT to another")
  server_pid >/dev/null || port_is_free "$server_port" || problems+=("port $server_port is taken: set BURANO_SERVER_PORT to another")
  if ((${#problems[@]})); then
    printf '\nIt cannot start:\n' >&2
    printf '  - %s\n' "${problems[@]}" >&2
    exit 1
  fi
}

start_cloud() {
  "$build/localcloud" up --state "$lab/cloud" --listen "127.0.0.1:$cloud_port"
}

upload_image() {
  OS_CLOUD=burano-admin "$build/burano" image upload --name burano-node --public "$image"
}

start_server() {
  local pid
  if pid=$(server_pid); then
    if [[ $(readlink "/proc/$pid/exe") == "$build/burano" ]]; then
      echo "Burano runs already (process $pid)"
      return
    fi
    echo "Burano was built anew: starting the new one"
    stop_server
  fi
  mkdir -p "$lab/server"
  OS_CLOUD=burano-service setsid "$build/burano" serve --listen "127.0.0.1:$server_port" --state "$lab/server" >>"$lab/server/log" 2>&1 </dev/null &
  pid=$!
  echo "$pid" >"$lab/server/pid"
  for ((i = 0; i < 300; i++)); do
    kill -0 "$pid" 2>/dev/null || { tail -n 20 "$lab/server/log" >&2; fail "Burano ended at its start; its log is $lab/server/log"; }
    if curl --silent --fail --output /dev/null "$BURANO_URL/readyz"; then
      echo "Burano answers at $BURANO_URL (process $pid, log $lab/server/log)"
      return
    fi
    sleep 0.1
  done
  fail "Burano does not answer; its log is $lab/server/log"
}

stop_server() {
  local pid
  pid=$(server_pid) || return 0
  kill "$pid"
  for ((i = 0; i < 300; i++)); do
    kill -0 "$pid" 2>/dev/null || return 0
    sleep 0.1
  done
  kill -KILL "$pid"
}

deploy() {
  export OS_CLOUD=burano-demo
  "$build/burano" package import --exists-action u test/packages/io.burano.demo.Hello
  "$build/burano" deploy test/environments/demo.yaml --follow
  # With it the cluster's autoRepair brings servers back that are stopped or deleted.
  "$build/burano" environment delegation set demo
}

# endpoint prints the address and port at which the application is published.
endpoint() {
  "$build/burano" environment show demo |
    jq -re '[.services[].applicationEndpoints[]? | select(.scope == "public") | "\(.address):\(.port)"][0]'
}

answers() {
  local where
  where=$(endpoint) || fail "the environment has no public endpoint"
  local seen=() answer
  for ((i = 0; i < 300; i++)); do
    if answer=$(curl --silent --fail --max-time 2 "http://$where/"); then
      [[ " ${seen[*]-} " == *" ${answer%%$'\n'*} "* ]] || { seen+=("${answer%%$'\n'*}"); echo "$answer"; }
      ((${#seen[@]} < 2)) || return 0
    fi
    sleep 0.1
  done
  fail "http://$where/ did not answer from both replicas within 30 seconds"
}

up() {
  preflight
  phase "Debian packages" test/setup/packages.sh
  phase "build Burano" make --no-print-directory build
  phase "node image" make --no-print-directory image
  phase "local cloud" start_cloud
  phase "upload the node image" upload_image
  phase "Burano" start_server
  phase "deploy a Kubernetes cluster and an application" deploy
  phase "the application answers through the gateway, from both replicas" answers
  "$build/burano" cluster kubeconfig demo --output "$lab/demo.kubeconfig"
  local where kubectl
  where=$(endpoint)
  kubectl=$(dirname "$image")/bin/kubectl
  say "It runs."
  printf '%s\n' "${phases[@]}"
  cat <<TEXT

The dashboard:    $BURANO_URL/dashboard/environments   user demo, password demo
The application:  curl http://$where/
The cluster:      $kubectl --kubeconfig $lab/demo.kubeconfig get nodes,pods,services -o wide
Burano:           export OS_CLIENT_CONFIG_FILE=$OS_CLIENT_CONFIG_FILE OS_CLOUD=burano-demo BURANO_URL=$BURANO_URL
                  $build/burano environment list
From another machine: ssh -L 8080:$where -L $server_port:127.0.0.1:$server_port $(id -un)@$(hostname)
                  and then http://127.0.0.1:8080/ and http://127.0.0.1:$server_port/dashboard/
Stop and remove everything: make demo-down
TEXT
}

lab_up() {
  preflight
  start_cloud
  upload_image
  echo "The lab is up: BURANO_LAB=$lab go test ./test/e2e/ runs an end-to-end test in it; make demo-down takes it down."
}

down() {
  stop_server
  if [[ -e $lab/cloud ]]; then
    if [[ ! -x $build/localcloud ]]; then
      echo "The local cloud of $lab/cloud can only be taken down by its program, which is not in $build: building it"
      command -v go >/dev/null || fail "Go is missing: install Go 1.26 or newer and put it on PATH, so that the local cloud can be taken down; nothing of it was removed"
      mkdir -p "$build"
      CGO_ENABLED=0 go build -o "$build/localcloud" ./cmd/localcloud || fail "the local cloud's program could not be built; nothing of it was removed"
    fi
    "$build/localcloud" down --state "$lab/cloud" || fail "the local cloud is not down; $lab is kept, so that make demo-down can be repeated"
  fi
  rm -rf "$lab"
  echo "Nothing of the demonstration in $lab is left."
  if ip link show blc-ext >/dev/null 2>&1; then
    echo "There is a local cloud of another folder on this machine (its bridge is blc-ext). If nobody uses it, localcloud down --abandoned removes it."
  fi
}

# stopped fails when the folder that is about to be deleted belongs to something that runs.
stopped() {
  local pid
  if pid=$(server_pid); then
    fail "Burano runs from $build (process $pid): make demo-down takes it down first"
  fi
  [[ ! -e $lab/cloud ]] || fail "a local cloud is left in $lab/cloud, with servers and networks: make demo-down takes it down first"
}

case ${1-} in
up) up ;;
lab) lab_up ;;
down) down ;;
stopped) stopped ;;
*) fail "usage: demo.sh up|lab|down|stopped" ;;
esac
