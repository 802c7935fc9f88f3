package route

// StatusSocket is the socket of a gateway's daemon for its status, which root can read.
const StatusSocket = "/run/burano-gateway.sock"

// Applied are revisions of etcd: of the last change of TCP routes, of the keys below HTTPPrefix and of certificates that a gateway serves, with all
// earlier ones. The writer of a change learns from it that the gateway serves the change.
type Applied struct {
	Routes       int64 `json:"routes"`
	HTTP         int64 `json:"http"`
	Certificates int64 `json:"certificates"`
}

// Covers reports whether all of another one is served.
func (a Applied) Covers(other Applied) bool {
	return a.Routes >= other.Routes && a.HTTP >= other.HTTP && a.Certificates >= other.Certificates
}
