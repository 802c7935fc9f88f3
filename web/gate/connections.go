package gate

import (
	"container/list"
	"context"
	"net"
	"net/netip"
	"sync"
)

// Connections limits the connections of a server, altogether and from one address. One more than the limit ends the connection that has been without a
// request of a known caller for longest, of the same address if that has half of all. So a server that is flooded with connections, or whose clients leave
// them open, answers new clients at once. Connections on which known callers are answered stay.
type Connections struct {
	most int

	mutex     sync.Mutex
	open      int
	idle      *list.List // the connections that may be ended, the longest first
	addresses map[netip.Addr]*address
}

// address is the other end of connections.
type address struct {
	open int
	idle *list.List // its own ones among Connections.idle
}

// NewConnections bounds the connections of servers, of all of them together.
func NewConnections(most int) *Connections {
	return &Connections{most: most, idle: list.New(), addresses: map[netip.Addr]*address{}}
}

// Listen returns a listener whose connections count.
func (c *Connections) Listen(listener net.Listener) net.Listener {
	return &bounded{listener, c}
}

type bounded struct {
	net.Listener
	connections *Connections
}

// Accept is for net.Listener.
func (b *bounded) Accept() (net.Conn, error) {
	for {
		accepted, err := b.Listener.Accept()
		if err != nil {
			return nil, err
		}
		if connection := b.connections.add(accepted); connection != nil {
			return connection, nil
		}
		_ = accepted.Close() // all others are in use
	}
}

// connection is a counted connection.
type connection struct {
	net.Conn
	of   *Connections
	from netip.Addr

	// Of Connections.mutex.
	uses       int
	closed     bool
	ofAll, own *list.Element // nil while it is in use
}

// add counts a connection and ends another one where there are too many; nil when none can be ended.
func (c *Connections) add(accepted net.Conn) *connection {
	added := &connection{Conn: accepted, of: c, from: addressOf(accepted)}
	c.mutex.Lock()
	at := c.addresses[added.from]
	if at == nil {
		at = &address{idle: list.New()}
	}
	var former *connection
	switch {
	case at.open >= (c.most+1)/2:
		former = first(at.idle)
	case c.open >= c.most:
		former = first(c.idle)
	default:
		former = added
	}
	if former == nil {
		c.mutex.Unlock()
		return nil
	}
	if former != added {
		c.remove(former)
	}
	c.addresses[added.from] = at
	c.open++
	at.open++
	c.rest(added)
	c.mutex.Unlock()
	if former != added {
		_ = former.Conn.Close() // it is removed, with or without an error of its end
	}
	return added
}

func first(connections *list.List) *connection {
	if front := connections.Front(); front != nil {
		return front.Value.(*connection)
	}
	return nil
}

// rest makes a connection one that may be ended when there are too many. The caller holds the mutex.
func (c *Connections) rest(one *connection) {
	one.ofAll = c.idle.PushBack(one)
	one.own = c.addresses[one.from].idle.PushBack(one)
}

// wake is the opposite of rest.
func (c *Connections) wake(one *connection) {
	if one.ofAll == nil {
		return
	}
	c.idle.Remove(one.ofAll)
	c.addresses[one.from].idle.Remove(one.own)
	one.ofAll, one.own = nil, nil
}

// remove forgets a connection. The caller holds the mutex.
func (c *Connections) remove(one *connection) {
	if one.closed {
		return
	}
	c.wake(one)
	one.closed = true
	c.open--
	at := c.addresses[one.from]
	if at.open--; at.open == 0 {
		delete(c.addresses, one.from)
	}
}

// Close is for net.Conn.
func (o *connection) Close() error {
	o.of.mutex.Lock()
	o.of.remove(o)
	o.of.mutex.Unlock()
	return o.Conn.Close()
}

type connectionKey struct{}

// Context is for http.Server's ConnContext: it adds the connection to its requests' context.
func Context(ctx context.Context, accepted net.Conn) context.Context {
	if encrypted, ok := accepted.(interface{ NetConn() net.Conn }); ok {
		accepted = encrypted.NetConn()
	}
	if one, ok := accepted.(*connection); ok {
		return context.WithValue(ctx, connectionKey{}, one)
	}
	return ctx
}

// Use protects the connection of a request until rest is called: its caller is known, and has a place.
func Use(ctx context.Context) (rest func()) {
	one, ok := ctx.Value(connectionKey{}).(*connection)
	if !ok {
		return func() {}
	}
	one.use(1)
	return sync.OnceFunc(func() { one.use(-1) })
}

func (o *connection) use(change int) {
	o.of.mutex.Lock()
	defer o.of.mutex.Unlock()
	if o.uses += change; o.closed {
		return
	}
	if o.uses == 0 {
		o.of.rest(o)
	} else {
		o.of.wake(o)
	}
}

// Open returns how many connections there are.
func (c *Connections) Open() int {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	return c.open
}

// addressOf is the other end of a connection; in IPv6 its network of 64 bits, which one host may own.
func addressOf(accepted net.Conn) netip.Addr {
	at, err := netip.ParseAddrPort(accepted.RemoteAddr().String())
	if err != nil {
		return netip.Addr{}
	}
	from := at.Addr().Unmap()
	if from.Is6() {
		from = netip.PrefixFrom(from.WithZone(""), 64).Masked().Addr()
	}
	return from
}
