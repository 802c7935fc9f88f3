package keystone

import (
	"html/template"
	"net"
	"net/http"
	"net/url"
)

// backToDashboard is the page by which Keystone has a browser post the token (keystone's sso_callback_template.html).
var backToDashboard = template.Must(template.New("").Parse(`<!doctype html>
<html><head><title>Keystone WebSSO redirect</title></head>
<body onload="document.forms[0].submit()">
<form action="{{.Origin}}" method="post"><input type="hidden" name="token" value="{{.Token}}"><noscript><input type="submit" value="Continue"></noscript></form>
</body></html>
`))

// federatedUser is the user of every federated sign-in: there is no identity provider.
const federatedUser = "demo"

// signInByFederation issues a token of no project and sends it to the dashboard that the browser comes from, which must be on this machine
// (https://docs.openstack.org/api-ref/identity/v3-ext/#web-single-sign-on-authentication).
func (s *Service) signInByFederation(w http.ResponseWriter, r *http.Request) error {
	origin, err := url.Parse(r.URL.Query().Get("origin"))
	if err != nil || net.ParseIP(origin.Hostname()) == nil || !net.ParseIP(origin.Hostname()).IsLoopback() {
		return failure{http.StatusUnauthorized, r.URL.Query().Get("origin") + " is not a trusted dashboard host"}
	}
	for _, user := range s.users.All() {
		if user.Name != federatedUser {
			continue
		}
		secret, err := s.issue(token{UserID: user.ID, Methods: []string{r.PathValue("protocol")}, IssuedAt: s.now(), ExpiresAt: s.now().Add(s.lifetime)})
		if err != nil {
			return err
		}
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		return backToDashboard.Execute(w, struct{ Origin, Token string }{origin.String(), secret})
	}
	return errUnauthorized
}
