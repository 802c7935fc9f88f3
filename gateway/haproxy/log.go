package haproxy

import (
	"fmt"
	"strings"

	"github.com/haproxytech/client-native/v6/models"
)

// compressed are the types that are compressed on demand: texts. Pictures and archives are compressed already.
var compressed = []string{"text/html", "text/plain", "text/css", "text/csv", "text/xml", "text/javascript", "application/javascript", "application/json", "application/xml",
	"application/wasm", "image/svg+xml"}

// logged are the headers of requests that are written to the log, in the order in which they are captured, and how much of each.
var logged = []struct {
	field, sample string
	most          int64
}{{"host", "req.hdr(host)", 253}, {"agent", "req.hdr(user-agent)", 256}, {"referer", "req.hdr(referer),field(1,?)", 512}}

// captures store the logged parts of a request until it is answered.
func captures() (rules models.HTTPRequestRules) {
	for _, one := range logged {
		rules = append(rules, &models.HTTPRequestRule{Type: models.HTTPRequestRuleTypeCapture, CaptureSample: one.sample, CaptureLen: one.most})
	}
	return rules
}

// longest is the maximum length of a line of the log. HAProxy cuts longer ones, so that they would be no JSON. Clients' texts are at most a request line
// of 1,024 bytes (tune.http.logurilen) and the captures, and are twice as long when all of it is escaped.
const longest = 8192

// requestFormat is the format of a request in the log: JSON, https://docs.haproxy.org/2.6/configuration.html#8.2.4. Clients' texts are escaped, and bytes
// that are no UTF-8 are left out. So is the part behind the ? of an address, which may contain tokens and names of people.
func requestFormat() string {
	said := func(sample string) string { return `"%[` + sample + `,json(utf8s)]"` }
	var headers strings.Builder
	for i, one := range logged {
		fmt.Fprintf(&headers, `"%s":%s,`, one.field, said(fmt.Sprintf("capture.req.hdr(%d)", i)))
	}
	return `'{"time":"%[date,utime(%Y-%m-%dT%H:%M:%SZ)]","client":"%[src]",` + headers.String() +
		`"method":` + said("capture.req.method") + `,"uri":` + said("capture.req.uri,field(1,?)") + `,"version":"%HV","tls":"%sslv",` +
		`"status":%ST,"bytes":%B,"milliseconds":%Ta,"queue":%Tw,"connect":%Tc,"response":%Tr,"pool":"%b","server":"%s","end":"%tsc"}'`
}

// frontend makes a frontend, with a log of its own where it has a format for one: the base's log has notices alone.
func (f *file) frontend(frontend *models.Frontend, id string) error {
	if err := f.client.CreateFrontend(frontend, id, 0); err != nil || frontend.LogFormat == "" {
		return err
	}
	return f.client.CreateLogTarget(0, "frontend", frontend.Name, &models.LogTarget{
		Address: "stdout", Length: longest, Format: models.LogTargetFormatRaw, Facility: models.LogTargetFacilityLocal0, Level: models.LogTargetLevelInfo,
	}, id, 0)
}
