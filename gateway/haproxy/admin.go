package haproxy

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"net/netip"
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

// servers asks the running worker for its servers. The fields are those of "show servers state" in HAProxy's management guide.
func (a *admin) servers() iter.Seq2[[]string, error] {
	return func(yield func([]string, error) bool) {
		answer, err := a.client.ExecuteRaw("show servers state")
		if err != nil {
			yield(nil, fmt.Errorf("ask HAProxy for its servers: %w", err))
			return
		}
		version, table, _ := strings.Cut(answer, "\n")
		if strings.TrimSpace(version) != "1" {
			yield(nil, fmt.Errorf("ask HAProxy for its servers: unexpected answer %.80q", answer))
			return
		}
		for line := range strings.Lines(table) {
			fields := strings.Fields(line)
			if len(fields) < 19 || fields[0] == "#" {
				continue
			}
			if !yield(fields, nil) {
				return
			}
		}
	}
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

// ours tells whether a section has servers that come from routes.
func ours(section string) bool {
	_, port := traffic.Port(section)
	return port || strings.HasPrefix(section, poolPrefix)
}

// listeners gives the running worker's published ports and pools, and which of their servers are down.
func (a *admin) listeners() (map[string]listener, []outage, error) {
	found := make(map[string]listener)
	var down []outage
	for fields, err := range a.servers() {
		if err != nil {
			return nil, nil, err
		}
		section := fields[1]
		if !ours(section) {
			continue
		}
		s, err := runningSlot(fields)
		if err != nil {
			return nil, nil, fmt.Errorf("ask HAProxy for its servers: %q: %w", fields, err)
		}
		l := found[section]
		l.Section, l.Slots = section, append(l.Slots, s)
		l.Port, _ = traffic.Port(section)
		found[section] = l
		if seconds, err := strconv.ParseInt(fields[9], 10, 64); err == nil && s.State != free && fields[5] == "0" {
			down = append(down, outage{section + "/" + s.Name, time.Duration(seconds) * time.Second})
		}
	}
	return found, down, nil
}

// maintenance are the bits of srv_admin_state with which a server is out of service: forced, inherited, by DNS.
// (The bit 0x04 only remembers that the configuration said "disabled".)
const maintenance = 0x01 | 0x02 | 0x20 | 0x40

func runningSlot(fields []string) (slot, error) {
	s := slot{Name: fields[3]}
	administrative, err := strconv.ParseUint(fields[6], 10, 32)
	if err != nil {
		return slot{}, err
	}
	if administrative&maintenance != 0 {
		return s, nil
	}
	weight, err := strconv.Atoi(fields[7])
	if err != nil {
		return slot{}, err
	}
	address, err := netip.ParseAddr(fields[4])
	if err != nil {
		return slot{}, err
	}
	port, err := strconv.ParseUint(fields[18], 10, 16)
	if err != nil {
		return slot{}, err
	}
	s.Address, s.State = netip.AddrPortFrom(address, uint16(port)), ready
	if weight == 0 {
		s.State = draining
	}
	return s, nil
}

// apply makes the changes at run time, in their order. One that fails does not keep the others from being made.
func (a *admin) apply(list []change) error {
	var problems []error
	for _, c := range list {
		if err := a.change(c); err != nil {
			problems = append(problems, fmt.Errorf("change HAProxy at run time (%s): %w", c, err))
		}
	}
	return errors.Join(problems...)
}

// change does one. Draining is a weight of zero: it is the one way to say it that the configuration file knows as well.
func (a *admin) change(c change) error {
	backend := c.Section
	if c.Slot.State == free {
		return a.client.SetServerState(backend, c.Slot.Name, "maint")
	}
	if c.Move {
		// First out of service: a slot whose address changes must not show the old one's health.
		if err := a.client.SetServerState(backend, c.Slot.Name, "maint"); err != nil {
			return err
		}
		if err := a.client.SetServerAddr(backend, c.Slot.Name, c.Slot.Address.Addr().String(), int(c.Slot.Address.Port())); err != nil {
			return err
		}
	}
	weight := "1"
	if c.Slot.State == draining {
		weight = "0"
	}
	if err := a.client.SetServerWeight(backend, c.Slot.Name, weight); err != nil {
		return err
	}
	return a.client.SetServerState(backend, c.Slot.Name, "ready")
}

// worker is the process id of the worker that answers, 0 when none does.
func (a *admin) worker() int64 {
	answer, err := a.client.ExecuteRaw("show info")
	if err != nil {
		return 0
	}
	for line := range strings.Lines(answer) {
		if number, ok := strings.CutPrefix(strings.TrimSpace(line), "Pid: "); ok {
			pid, _ := strconv.ParseInt(number, 10, 64)
			return pid
		}
	}
	return 0
}
