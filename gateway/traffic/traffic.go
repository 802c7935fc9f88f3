// Package traffic reads the counters of a gateway's HAProxy: connections, bytes and errors of each listener and of the servers behind it.
package traffic

import (
	"bufio"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/burano/burano/internal/door"
)

// Socket is where HAProxy's admin socket is on a gateway.
const Socket = "/run/haproxy-admin.sock"

// Section is the name of the frontend and the backend of a published port in HAProxy's configuration.
func Section(port uint16) string { return sectionPrefix + strconv.Itoa(int(port)) }

const sectionPrefix = "port-"

// Port is the published port of a section; ok is false for a section of something else.
func Port(section string) (port uint16, ok bool) {
	number, ok := strings.CutPrefix(section, sectionPrefix)
	if !ok {
		return 0, false
	}
	parsed, err := strconv.ParseUint(number, 10, 16)
	return uint16(parsed), err == nil
}

// Counters are HAProxy's counters of a listener or a server. All but Connections and ConnectionsPerSecond grow, and begin at zero when HAProxy loads a new
// configuration.
type Counters struct {
	Connections          int64 `json:"connections"`            // open now
	ConnectionsPerSecond int64 `json:"connections_per_second"` // in the last second
	ConnectionsTotal     int64 `json:"connections_total"`
	BytesIn              int64 `json:"bytes_in"`  // from clients
	BytesOut             int64 `json:"bytes_out"` // to clients
	// Errors, by the failed step.
	ConnectionErrors int64 `json:"connection_errors"` // no connection to a server came about
	ResponseErrors   int64 `json:"response_errors"`   // a server ended an answer, or sent an invalid one
	RequestErrors    int64 `json:"request_errors"`    // a client sent an invalid request; of a server 0
	Denied           int64 `json:"denied"`            // by a rule
	// Retries are connections to a server that were tried again, Redispatches the ones among them that went to another server.
	Retries      int64 `json:"retries"`
	Redispatches int64 `json:"redispatches"`
}

// Listener is a published port.
type Listener struct {
	Port uint16 `json:"port"`
	Counters
	Queued   int64    `json:"queued"` // clients that wait for a server now
	Backends []Server `json:"backends"`
}

// The states of a server.
const (
	Up        = "up"
	Down      = "down"
	Draining  = "draining"  // keeps the connections that it has, and gets no new ones
	Unchecked = "unchecked" // HAProxy does not know yet
)

// Server is a server behind a listener.
type Server struct {
	Address string `json:"address"` // host:port
	State   string `json:"state"`
	// Check is how its last check ended, in HAProxy's words, such as "Layer4 connection problem"; "" before the first one.
	Check string `json:"check"`
	// Seconds is how long it has been in this state.
	Seconds int64 `json:"seconds"`
	Counters
}

// How large an answer may be. A gateway publishes some hundreds of ports, and a line of the table has some hundred bytes.
const (
	answerLimit = 16 << 20 // bytes
	lineLimit   = 16 << 10 // bytes of a line
	rowLimit    = 50_000
)

// Ask asks HAProxy over a connection to its admin socket; HAProxy ends the connection with the answer. The listeners are ordered by
// port, and their servers by address. Servers that are out of service are left out: these are about to go.
func Ask(socket io.ReadWriter) ([]Listener, error) {
	if _, err := io.WriteString(socket, "show stat\n"); err != nil {
		return nil, fmt.Errorf("ask HAProxy what it counts: %w", err)
	}
	found, err := read(door.Lines(door.Reader(socket, answerLimit, "the answer"), lineLimit, "the answer"))
	if err != nil {
		return nil, fmt.Errorf("ask HAProxy what it counts: %w", err)
	}
	return found, nil
}

// read reads the table of "show stat" (HAProxy's management guide, "Statistics and monitoring", "CSV format").
func read(from io.Reader) ([]Listener, error) {
	buffered := bufio.NewReader(from)
	if mark, err := buffered.Peek(2); err != nil || string(mark) != "# " {
		line, _ := buffered.ReadString('\n')
		return nil, errors.Join(fmt.Errorf("unexpected answer %.80q", line), err)
	}
	_, _ = buffered.Discard(2)
	table := csv.NewReader(buffered)
	table.FieldsPerRecord = -1 // an empty line ends the table, and versions differ in the columns behind the last name
	table.ReuseRecord = true
	header, err := table.Read()
	if err != nil {
		return nil, err
	}
	columns := make(map[string]int, len(header))
	for i, name := range header {
		columns[name] = i
	}
	for _, needed := range []string{"pxname", "svname", "status", "stot", "addr"} {
		if _, there := columns[needed]; !there {
			return nil, fmt.Errorf("the table has no column %q", needed)
		}
	}
	found := map[uint16]*Listener{}
	for rows := 0; ; rows++ {
		if rows > rowLimit {
			return nil, &door.Exceeded{What: "the answer", Bound: strconv.Itoa(rowLimit) + " lines"}
		}
		fields, err := table.Read()
		if errors.Is(err, io.EOF) {
			return sorted(found), nil
		}
		if err != nil {
			return nil, err
		}
		record := row{columns, fields}
		port, ours := Port(record.text("pxname"))
		if !ours {
			continue
		}
		if found[port] == nil {
			found[port] = &Listener{Port: port, Backends: []Server{}}
		}
		if err := found[port].add(record); err != nil {
			return nil, fmt.Errorf("%s of port %d: %w", record.text("svname"), port, err)
		}
	}
}

// add takes a line of the table in.
func (l *Listener) add(record row) error {
	counted, err := record.counters()
	if err != nil {
		return err
	}
	switch record.text("svname") {
	case "FRONTEND": // counts the clients' side
		counted.ConnectionErrors, counted.ResponseErrors, counted.Retries, counted.Redispatches = l.ConnectionErrors, l.ResponseErrors, l.Retries, l.Redispatches
		l.Counters = counted
	case "BACKEND": // counts the servers' side, also where there was no server to try
		l.ConnectionErrors, l.ResponseErrors, l.Retries, l.Redispatches = counted.ConnectionErrors, counted.ResponseErrors, counted.Retries, counted.Redispatches
		l.Queued, err = record.number("qcur")
	default:
		server := Server{Address: record.text("addr"), State: record.state(), Check: record.text("check_desc"), Counters: counted}
		if server.State == "" {
			return nil
		}
		server.Seconds, err = record.number("lastchg")
		l.Backends = append(l.Backends, server)
	}
	return err
}

// row is a line of the table.
type row struct {
	columns map[string]int
	fields  []string
}

func (r row) text(column string) string {
	if i, there := r.columns[column]; there && i < len(r.fields) {
		return r.fields[i]
	}
	return ""
}

// number is 0 where the line, or the table, has none.
func (r row) number(column string) (int64, error) {
	text := r.text(column)
	if text == "" {
		return 0, nil
	}
	number, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		return 0, fmt.Errorf("%s is %q", column, text)
	}
	return number, nil
}

func (r row) counters() (c Counters, err error) {
	var deniedRequests, deniedResponses int64
	for column, to := range map[string]*int64{
		"scur": &c.Connections, "rate": &c.ConnectionsPerSecond, "stot": &c.ConnectionsTotal, "bin": &c.BytesIn, "bout": &c.BytesOut, "econ": &c.ConnectionErrors,
		"eresp": &c.ResponseErrors, "ereq": &c.RequestErrors, "dreq": &deniedRequests, "dresp": &deniedResponses, "wretr": &c.Retries, "wredis": &c.Redispatches,
	} {
		if *to, err = r.number(column); err != nil {
			return c, err
		}
	}
	c.Denied = deniedRequests + deniedResponses
	return c, nil
}

// state is "" of a server that is out of service.
func (r row) state() string {
	status, _, _ := strings.Cut(r.text("status"), " ") // "UP 1/2" is about to be down
	switch {
	case status == "MAINT":
		return ""
	case status == "DRAIN" || status != "DOWN" && r.text("weight") == "0":
		return Draining
	case status == "UP":
		return Up
	case status == "DOWN", status == "NOLB":
		return Down
	}
	return Unchecked
}

func sorted(found map[uint16]*Listener) []Listener {
	list := make([]Listener, 0, len(found))
	for _, one := range found {
		slices.SortFunc(one.Backends, func(a, b Server) int { return strings.Compare(a.Address, b.Address) })
		list = append(list, *one)
	}
	slices.SortFunc(list, func(a, b Listener) int { return int(a.Port) - int(b.Port) })
	return list
}
