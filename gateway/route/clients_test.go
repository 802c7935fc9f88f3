package route_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/burano/burano/gateway/haproxytest"
	"github.com/burano/burano/gateway/route"
)

// TestAGatewayThatChecksNoClientsLeavesCheckedPortsOut has the values as a gateway of the former release reads them: without the fields that it does not know.
func TestAGatewayThatChecksNoClientsLeavesCheckedPortsOut(t *testing.T) {
	bundle, err := route.ReadAuthorities(haproxytest.NewAuthority(t, "users").PEM)
	require.NoError(t, err)
	for _, part := range []route.Part{
		{Listener: &route.Listener{Port: 443, TLS: true, Checks: []route.Check{{Authorities: bundle.Name()}}}},
		{Authorities: &bundle},
	} {
		value, err := route.EncodePart(part)
		require.NoError(t, err)
		_, err = route.DecodePart(route.PartKey(part), value)
		require.NoError(t, err)
		former := strings.NewReplacer(`"checks"`, `"unknown"`, `"authorities":{`, `"unknown":{`).Replace(string(value))
		_, err = route.DecodePart(route.PartKey(part), []byte(former))
		require.Error(t, err)
		_, err = route.DecodePart(strings.Replace(route.PartKey(part), route.CheckedPrefix, route.ListenersPrefix, 1)+"x", value)
		require.Error(t, err)
	}
	value, err := route.EncodePart(route.Part{Listener: &route.Listener{Port: 443, TLS: true, Checks: []route.Check{{Authorities: bundle.Name()}}}})
	require.NoError(t, err)
	_, err = route.DecodePart(route.ListenersPrefix+"443", value)
	require.Error(t, err, "a check has one place")
}

func TestOnlyCertificatesOfAuthoritiesAreABundle(t *testing.T) {
	one, two := haproxytest.NewAuthority(t, "one"), haproxytest.NewAuthority(t, "two")
	leaf, key := one.Sign(t, "www.a.org")
	bundle, err := route.ReadAuthorities(one.PEM+two.PEM, "\n"+one.PEM)
	require.NoError(t, err)
	require.Equal(t, one.PEM+two.PEM, bundle.PEM, "each once")
	require.NoError(t, route.Part{Authorities: &bundle}.Validate())
	for what, text := range map[string]string{
		"nothing": "", "no PEM": "authority", "text behind": one.PEM + "bind :22", "a key": string(key), "a key behind": one.PEM + string(key), "a server's": one.PEM + string(leaf),
		"too long": one.PEM + strings.Repeat("\n", route.MaxAuthoritiesSize), "no certificate": "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n",
	} {
		_, err := route.ReadAuthorities(text)
		require.Error(t, err, what)
	}
	require.Error(t, route.Part{Authorities: &route.Authorities{PEM: one.PEM + "\n# text"}}.Validate())
	var many strings.Builder
	for range route.MaxAuthorities + 1 {
		many.WriteString(haproxytest.NewAuthority(t, "one").PEM)
	}
	_, err = route.ReadAuthorities(many.String())
	require.Error(t, err)
}

// FuzzReadAuthorities checks that a bundle is written as it was read, and has nothing but certificates.
func FuzzReadAuthorities(f *testing.F) {
	one := haproxytest.NewAuthority(f, "one")
	f.Add(one.PEM)
	f.Add("x\n" + one.PEM + one.PEM)
	f.Add(strings.Replace(one.PEM, "-----\n", "-----\nheader: value\n\n", 1))
	f.Fuzz(func(t *testing.T, text string) {
		bundle, err := route.ReadAuthorities(text)
		if err != nil {
			return
		}
		require.NoError(t, route.Part{Authorities: &bundle}.Validate())
		require.Regexp(t, `^(-----(BEGIN|END) CERTIFICATE-----\n|[A-Za-z0-9+/=]{1,64}\n)+$`, bundle.PEM)
	})
}
