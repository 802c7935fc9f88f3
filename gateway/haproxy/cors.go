package haproxy

import (
	"fmt"
	"net/http"
	"strconv"
	"strings"

	"github.com/haproxytech/client-native/v6/models"

	"github.com/burano/burano/gateway/route"
)

// Variables and conditions of requests from pages of other origins (Fetch standard, CORS protocol).
const (
	hasOrigin   = "{ req.fhdr(origin) -m found }"
	admitted    = "{ var(txn.origin) -m found }"
	isPreflight = "{ method OPTIONS } " + hasOrigin + " { req.fhdr(access-control-request-method) -m found }"
)

// corsRules answer preflight requests, and tell browsers which origins may read the other answers. A preflight request of an origin that is not admitted
// is answered without these headers, so that the browser refuses it.
func corsRules(c *route.CORS) (requests models.HTTPRequestRules, responses models.HTTPResponseRules) {
	var l ruleList
	for _, origin := range c.Origins {
		l.set("origin", "req.fhdr(origin)", originIs(origin))
	}
	echo := func(list []string, header string) string {
		if route.Any(list) {
			return "%[req.fhdr(" + header + ")]" // a header without a value is left out
		}
		return literal(strings.Join(list, ", "))
	}
	vary := [2]string{"Vary", "Origin"}
	headers := [][2]string{{"Access-Control-Allow-Origin", "%[var(txn.origin)]"}}
	if c.Credentials {
		headers = append(headers, [2]string{"Access-Control-Allow-Credentials", "true"})
	}
	// With credentials an asterisk would be the name of a header.
	if expose := strings.Join(c.Expose, ", "); expose != "" && !(c.Credentials && route.Any(c.Expose)) {
		headers = append(headers, [2]string{"Access-Control-Expose-Headers", literal(expose)})
	}
	for _, header := range headers {
		responses = append(responses, &models.HTTPResponseRule{Type: models.HTTPResponseRuleTypeSetDashHeader, HdrName: header[0], HdrFormat: header[1], Cond: "if", CondTest: admitted})
	}
	responses = append(responses, &models.HTTPResponseRule{Type: models.HTTPResponseRuleTypeAddDashHeader, HdrName: vary[0], HdrFormat: vary[1]})
	if len(c.Methods) > 0 {
		headers = append(headers, [2]string{"Access-Control-Allow-Methods", echo(c.Methods, "access-control-request-method")})
	}
	if len(c.Headers) > 0 {
		headers = append(headers, [2]string{"Access-Control-Allow-Headers", echo(c.Headers, "access-control-request-headers")})
	}
	headers = append(headers, [2]string{"Access-Control-Max-Age", strconv.Itoa(int(c.MaxAge))}, vary)
	nothing := int64(http.StatusNoContent)
	answer := &models.HTTPRequestRule{Type: models.HTTPRequestRuleTypeReturn, ReturnStatusCode: &nothing, Cond: "if", CondTest: isPreflight + " " + admitted}
	for _, header := range headers {
		answer.ReturnHeaders = append(answer.ReturnHeaders, &models.ReturnHeader{Name: &header[0], Fmt: &header[1]})
	}
	refusal := &models.HTTPRequestRule{
		Type: models.HTTPRequestRuleTypeReturn, ReturnStatusCode: &nothing, ReturnHeaders: []*models.ReturnHeader{{Name: &vary[0], Fmt: &vary[1]}}, Cond: "if", CondTest: isPreflight,
	}
	return append(l.rules, answer, refusal), responses
}

// originIs is the condition of an origin that is admitted.
func originIs(origin string) string {
	if origin == "*" {
		return hasOrigin
	}
	const asked = "req.fhdr(origin),lower,hex -m"
	before, after, wild := strings.Cut(origin, "*")
	if !wild {
		return fmt.Sprintf("{ %s str %s }", asked, hexadecimal(origin))
	}
	condition := fmt.Sprintf("{ %s beg %s } { req.fhdr(origin),length -m int gt %d }", asked, hexadecimal(before), len(before)+len(after))
	if after != "" {
		condition += fmt.Sprintf(" { %s end %s }", asked, hexadecimal(after))
	}
	return condition
}
