package haproxy

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/haproxytech/client-native/v6/runtime"
	"github.com/haproxytech/client-native/v6/runtime/options"

	"github.com/burano/burano/gateway/traffic"
)

// admin is the running HAProxy, reached by its admin socket.
type admin struct {
	client runtime.Runtime
}

// openAdmin does not need HAProxy to run yet.
func openAdmin(ctx context.Context, socket string) (*admin, error) {
	client, err := runtime.New(ctx, options.Socket(socket), options.DoNotCheckRuntimeOnInit)
	if err != nil {
		return nil, fmt.Errorf("use HAProxy's admin socket %s: %w", socket, err)
	}
	return &admin{client: client}, nil
}

// outage is a server that is down by its checks.
type outage struct {
	server string // section/name
	since  time.Duration
}

// end ends the connections to a server.
func (a *admin) end(server string) error {
	if _, err := a.client.ExecuteRaw("shutdown sessions server " + server); err != nil {
		return fmt.Errorf("end the connections to %s, which is down: %w", server, err)
	}
	return nil
}

// ours reports whether a section has servers that come from routes.
func ours(section string) bool {
	_, port := traffic.Port(section)
	return port || strings.HasPrefix(section, poolPrefix)
}

// snapshot is a worker's report about itself.
type snapshot struct {
	worker    int64 // its process
	listeners map[string]listener
	down      []outage
}

// The first words of the parts of the answers to the commands of look, from HAProxy's management guide. An empty line ends each.
const (
	processLine  = "Pid: "
	backendsHead = "# name"
	serversHead  = "# be_id be_name srv_id srv_name srv_addr srv_op_state srv_admin_state srv_uweight "
)

// look asks for the published ports and pools, all at once: while HAProxy reloads, the next question may be another worker's.
func (a *admin) look() (snapshot, error) {
	found := snapshot{listeners: make(map[string]listener)}
	answer, err := a.client.ExecuteRaw("show info;show backend;show servers state")
	if err != nil {
		return found, fmt.Errorf("ask HAProxy for its servers: %w", err)
	}
	head := ""
	for line := range strings.Lines(answer) {
		line = strings.TrimRight(line, "\n")
		switch fields := strings.Fields(line); {
		case len(fields) == 0:
			head = ""
		case line == backendsHead:
			head = backendsHead
		case strings.HasPrefix(line, serversHead):
			head = serversHead
		case head == backendsHead && ours(line):
			port, _ := traffic.Port(line)
			found.listeners[line] = listener{Section: line, Port: port}
		case head == serversHead && len(fields) >= 19 && ours(fields[1]):
			if err := found.add(fields); err != nil {
				return found, fmt.Errorf("ask HAProxy for its servers: %q: %w", fields, err)
			}
		default:
			if number, is := strings.CutPrefix(line, processLine); is {
				found.worker, _ = strconv.ParseInt(number, 10, 64)
			}
		}
	}
	if found.worker == 0 || head != serversHead {
		return found, fmt.Errorf("ask HAProxy for its servers: unexpected answer %.80q", answer)
	}
	for section, l := range found.listeners {
		slices.SortFunc(l.Servers, compareServers)
		found.listeners[section] = l
	}
	return found, nil
}

// add takes a line of "show servers state" in.
func (found *snapshot) add(fields []string) error {
	section := fields[1]
	l, there := found.listeners[section]
	if !there {
		return errors.New("there is no such backend")
	}
	s, err := runningServer(fields)
	if err != nil {
		return err
	}
	l.Servers = append(l.Servers, s)
	found.listeners[section] = l
	if seconds, err := strconv.ParseInt(fields[9], 10, 64); err == nil && s.State != leaving && fields[5] == "0" {
		found.down = append(found.down, outage{section + "/" + s.Name, time.Duration(seconds) * time.Second})
	}
	return nil
}

// maintenance are the bits of srv_admin_state of a server that is out of service: forced, inherited, by DNS. (The bit 0x04 only records that the
// configuration had "disabled".)
const maintenance = 0x01 | 0x02 | 0x20 | 0x40

func runningServer(fields []string) (server, error) {
	s := server{Name: fields[3]}
	administrative, err := strconv.ParseUint(fields[6], 10, 32)
	if err != nil {
		return server{}, err
	}
	weight, err := strconv.Atoi(fields[7])
	if err != nil {
		return server{}, err
	}
	address, err := netip.ParseAddr(fields[4])
	if err != nil {
		return server{}, err
	}
	port, err := strconv.ParseUint(fields[18], 10, 16)
	if err != nil {
		return server{}, err
	}
	s.Address = netip.AddrPortFrom(address, uint16(port))
	switch {
	case administrative&maintenance != 0:
		s.State = leaving
	case weight == 0:
		s.State = draining
	default:
		s.State = ready
	}
	return s, nil
}

// apply makes the changes at run time, in their order; checks is how new servers are checked. One that fails does not keep the others from being made.
func (a *admin) apply(list []change, checks checks) error {
	var problems []error
	for _, c := range list {
		if err := a.change(c, checks); err != nil {
			problems = append(problems, fmt.Errorf("change HAProxy at run time (%s): %w", c, err))
		}
	}
	return errors.Join(problems...)
}

// change makes one change. Draining is a weight of zero, which the configuration file can express as well.
func (a *admin) change(c change, checks checks) error {
	name := c.Section + "/" + c.Server.Name
	if c.Server.State == leaving {
		return a.client.SetServerState(c.Section, c.Server.Name, "maint")
	}
	weight := " weight 1"
	if c.Server.State == draining {
		weight = " weight 0"
	}
	if !c.New {
		return a.commands("set server "+name+weight, "set server "+name+" state ready")
	}
	// It begins out of service, and without checks. It takes nothing from default-server. The word "enabled" is not used: HAProxy 2.6 does not count such
	// a server among the servers in service, but subtracts it when it goes, until a section seems to have none.
	list := []string{"add server " + name + " " + c.Server.Address.String() + weight + c.Protocol + checks.ofNew(), "enable server " + name}
	if checks.enabled() {
		list = append(list, "enable health "+name)
	}
	return a.commands(list...)
}

// remove has HAProxy let go of a server that is out of service. It does not as long as a connection lasts.
func (a *admin) remove(section, name string) (gone bool, err error) {
	switch _, err := a.command("del server " + section + "/" + name); {
	case err == nil:
		return true, nil
	case strings.Contains(err.Error(), "still has connections"):
		return false, nil
	default:
		return false, fmt.Errorf("take the server %s/%s from HAProxy: %w", section, name, err)
	}
}

// commands asks for changes, of which each needs the one before.
func (a *admin) commands(list ...string) error {
	answer, err := a.client.ExecuteRaw(strings.Join(list, ";"))
	if err != nil {
		return err
	}
	for line := range strings.Lines(answer) {
		if err := refused(line); err != nil {
			return err
		}
	}
	return nil
}

// refused is the error of an answer that refuses a command: it begins with a number up to 3, a severity of syslog.
func refused(answer string) error {
	for _, severity := range []string{"[0]:", "[1]:", "[2]:", "[3]:"} {
		if problem, failed := strings.CutPrefix(strings.TrimSpace(answer), severity); failed {
			return errors.New(strings.TrimSpace(problem))
		}
	}
	return nil
}

// worker is the process id of the worker that answers, 0 when none does.
func (a *admin) worker() int64 {
	answer, err := a.client.ExecuteRaw("show info")
	if err != nil {
		return 0
	}
	for line := range strings.Lines(answer) {
		if number, ok := strings.CutPrefix(strings.TrimSpace(line), processLine); ok {
			pid, _ := strconv.ParseInt(number, 10, 64)
			return pid
		}
	}
	return 0
}
