package publish

import "github.com/burano/burano/gateway/route"

// Wanted are the ports that Ingresses and Gateways want.
func Wanted(s Sites) []route.Listener { return s.wanted }
