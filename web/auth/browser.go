package auth

import (
	"errors"
	"net"
	"net/http"
	"net/netip"
	"time"

	"github.com/labstack/echo/v4"

	"github.com/burano/burano/internal/fault"
)

// Names of the cookie. A browser accepts one that begins with __Host- only by TLS, for the whole of one host and from no other host (RFC 6265bis, section
// 4.1.3.2), so that a neighbour below the same domain cannot give a browser a cookie of its own choice.
const (
	cookieName  = "burano"
	cookieByTLS = "__Host-burano"
)

// byTLS reports whether the browser uses TLS, to this server or to a trusted proxy.
func (a *Authenticator) byTLS(request *http.Request) bool {
	return request.TLS != nil || believed(a.Proxies, request.RemoteAddr) && request.Header.Get(echo.HeaderXForwardedProto) == "https"
}

func (a *Authenticator) cookieName(request *http.Request) string {
	if a.byTLS(request) {
		return cookieByTLS
	}
	return cookieName
}

// cookie is the value of the request's cookie, "" when it has none.
func (a *Authenticator) cookie(request *http.Request) string {
	cookie, err := request.Cookie(a.cookieName(request))
	if err != nil {
		return ""
	}
	return cookie.Value
}

// setCookie sets the cookie until expires; the value "" takes it away.
func (a *Authenticator) setCookie(c echo.Context, value string, expires time.Time) {
	a.setNamedCookie(c, a.cookieName(c.Request()), value, expires)
}

func (a *Authenticator) setNamedCookie(c echo.Context, name, value string, expires time.Time) {
	cookie := &http.Cookie{Name: name, Value: value, Path: "/", Expires: expires, HttpOnly: true, Secure: a.byTLS(c.Request()),
		SameSite: http.SameSiteStrictMode}
	if value == "" {
		cookie.MaxAge = -1
	}
	c.SetCookie(cookie)
	c.Response().Header().Set(echo.HeaderCacheControl, "no-store")
}

// sameOrigin refuses requests of other sites' pages. Authenticator has the reasons.
func (a *Authenticator) sameOrigin(request *http.Request) error {
	changes := request.Method != http.MethodGet && request.Method != http.MethodHead && request.Method != http.MethodOptions
	asChange := *request
	asChange.Method = http.MethodPost // of reads it would not ask
	if err := a.origin.Check(&asChange); err != nil {
		return fault.New(fault.Forbidden, "This request was made by a page of another site (%w): a browser that is signed in is served only for Burano's own pages", err)
	}
	if changes && request.Header.Get(RequestedWith) == "" {
		return fault.New(fault.Forbidden, "This request has no header %s: with a cookie, whatever changes something must have it, with any value, "+
			"because pages of other sites cannot send it", RequestedWith)
	}
	return nil
}

// believed reports whether a request's other end is one of the proxies.
func believed(proxies []netip.Prefix, remote string) bool {
	address, err := netip.ParseAddrPort(remote)
	if err != nil {
		return false
	}
	for _, proxy := range proxies {
		if proxy.Contains(address.Addr().Unmap()) {
			return true
		}
	}
	return false
}

// AddressOf returns the address of a request's client: the last one that is no trusted proxy's.
func AddressOf(proxies []netip.Prefix) echo.IPExtractor {
	if len(proxies) == 0 {
		return echo.ExtractIPDirect()
	}
	options := []echo.TrustOption{echo.TrustLoopback(false), echo.TrustLinkLocal(false), echo.TrustPrivateNet(false)}
	for _, proxy := range proxies {
		options = append(options, echo.TrustIPRange(&net.IPNet{IP: proxy.Masked().Addr().AsSlice(), Mask: net.CIDRMask(proxy.Bits(), proxy.Addr().BitLen())}))
	}
	return echo.ExtractIPFromXFFHeader(options...)
}

// ParseProxies reads addresses (10.0.0.7) and ranges (10.0.0.0/24) of proxies.
func ParseProxies(texts []string) ([]netip.Prefix, error) {
	var list []netip.Prefix
	for _, text := range texts {
		prefix, err := netip.ParsePrefix(text)
		if address, single := netip.ParseAddr(text); single == nil {
			prefix, err = netip.PrefixFrom(address, address.BitLen()), nil
		}
		if err != nil {
			return nil, errors.New(text + " is neither an address such as 10.0.0.7 nor a range such as 10.0.0.0/24")
		}
		list = append(list, prefix)
	}
	return list, nil
}
