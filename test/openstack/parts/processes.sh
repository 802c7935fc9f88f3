# shellcheck shell=bash
# How parts write configuration, and start and await processes.

# configure writes a file of configuration from standard input.
configure() {
  mkdir -p "$(dirname "$1")"
  cat >"$1"
}

# runs tells whether a process of this name was started and has not ended.
runs() { [[ -f /srv/pid/$1 ]] && kill -0 "$(<"/srv/pid/$1")" 2>/dev/null; }

# background starts a command (or function) under a name, unless it runs; its output goes to the name's log.
background() {
  local name=$1
  shift
  if runs "$name"; then return; fi
  "$@" >>"/srv/log/$name" 2>&1 </dev/null &
  echo $! >"/srv/pid/$name"
  disown
}

# await NAME SECONDS COMMAND waits until a command succeeds, as long as the process of this name runs.
await() {
  local name=$1 limit=$((SECONDS + $2))
  shift 2
  until "$@" >/dev/null 2>&1; do
    if ! runs "$name"; then
      echo "$name has ended; the end of its log:" >&2
      tail -n 20 "/srv/log/$name" >&2
      return 1
    fi
    if ((SECONDS > limit)); then
      echo "$name is not ready: $* fails; the end of its log:" >&2
      tail -n 20 "/srv/log/$name" >&2
      return 1
    fi
    sleep 0.2
  done
}

answers() { curl --silent --output /dev/null --max-time 5 "$1"; }
listens() { (exec 3<>"/dev/tcp/127.0.0.1/$1"); }

# once runs a command that must be run a single time; what it says goes to its log.
once() {
  local name=$1
  shift
  [[ ! -e /srv/data/done-$name ]] || return 0
  if ! "$@" >>"/srv/log/$name" 2>&1; then
    echo "$* failed:" >&2
    tail -n 20 "/srv/log/$name" >&2
    return 1
  fi
  touch "/srv/data/done-$name"
}

# wsgi NAME PORT PROGRAM LINE... starts a service that is a WSGI program, in uWSGI.
wsgi() {
  local name=$1 port=$2 program=$3
  shift 3
  {
    cat <<END
[uwsgi]
plugins = python3
http-socket = 127.0.0.1:$port
wsgi-file = $program
master = true
threads = 4
enable-threads = true
lazy-apps = true
die-on-term = true
no-orphans = true
buffer-size = 65535
add-header = Connection: close
disable-logging = true
END
    printf '%s\n' "$@"
  } | configure "/srv/etc/$name/uwsgi.ini"
  background "$name" uwsgi_python3 --ini "/srv/etc/$name/uwsgi.ini"
}

sql() { mariadb --no-defaults --socket=/srv/run/mariadb --user=root "$@"; }
database() { sql --execute="CREATE DATABASE IF NOT EXISTS $1 CHARACTER SET utf8mb3"; }
databaseURL() { echo "mysql+pymysql://openstack:secret@127.0.0.1:3306/$1?charset=utf8"; }

queueURL() { echo rabbit://openstack:secret@127.0.0.1:5672/; }

# credentials USER prints how a service signs in to Keystone as a service user.
credentials() {
  cat <<END
auth_url = http://127.0.0.1:5000/v3
auth_type = password
project_domain_name = Default
user_domain_name = Default
project_name = service
username = $1
password = secret
region_name = RegionOne
END
}

# common USER prints the sections that every service has.
common() {
  cat <<END
[keystone_authtoken]
www_authenticate_uri = http://127.0.0.1:5000/v3
memcached_servers = 127.0.0.1:11211
service_token_roles_required = true
$(credentials "$1")
[oslo_concurrency]
lock_path = /srv/run/lock
[privsep]
helper_command = /usr/bin/privsep-helper
END
}
