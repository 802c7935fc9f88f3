package route

// StatusSocket is where the daemon of a gateway tells how it is, for whoever may read it: root.
const StatusSocket = "/run/burano-gateway.sock"

// Applied are revisions of etcd: of the last change of TCP routes, of what is below HTTPPrefix and of certificates that a gateway serves, with all
// before it. Who has written a change knows by it that the gateway has got so far.
type Applied struct {
	Routes       int64 `json:"routes"`
	HTTP         int64 `json:"http"`
	Certificates int64 `json:"certificates"`
}

// Covers says whether all of another one is served.
func (a Applied) Covers(other Applied) bool {
	return a.Routes >= other.Routes && a.HTTP >= other.HTTP && a.Certificates >= other.Certificates
}
