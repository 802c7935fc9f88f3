package route

import (
	"bytes"
	"crypto/sha256"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"regexp"
	"slices"
)

// CheckedPrefix is where ports are whose clients show certificates. A gateway of a release that checks none finds a value there that contradicts its key,
// and does not serve the port.
const CheckedPrefix = HTTPPrefix + "checked/"

// AuthoritiesPrefix is where bundles of authorities are.
const AuthoritiesPrefix = HTTPPrefix + "authorities/"

// Limits of a bundle: gateways read it at each reload.
const (
	MaxAuthorities     = 256
	MaxAuthoritiesSize = 256 << 10 // bytes
	maxChecks          = 64        // of a port
)

// Check is the check of clients' certificates on a port.
type Check struct {
	Authorities string   `json:"authorities"`        // the name of the bundle that signs the certificates
	Optional    bool     `json:"optional,omitempty"` // clients without a valid certificate are served, too
	Gateways    []string `json:"gateways,omitempty"` // the only ones that check; none: all
}

// Same reports whether both check the same, wherever they do.
func (c *Check) Same(other *Check) bool {
	if c == nil || other == nil {
		return c == other
	}
	return c.Authorities == other.Authorities && c.Optional == other.Optional
}

// Authorities is a bundle of certificates of authorities, in PEM and nothing else. They are public, so that they are not sealed.
type Authorities struct {
	PEM string `json:"pem"`
}

// ReadAuthorities makes a bundle of the certificates of some texts in PEM. A text without one, or with anything but certificates, is an error.
func ReadAuthorities(texts ...string) (Authorities, error) {
	var bundle []byte
	seen := make(map[[sha256.Size]byte]bool)
	for _, text := range texts {
		if len(text) > MaxAuthoritiesSize {
			return Authorities{}, fmt.Errorf("%d bytes are more than the %d that gateways take", len(text), MaxAuthoritiesSize)
		}
		rest, some := bytes.TrimSpace([]byte(text)), false
		for len(rest) > 0 {
			var block *pem.Block
			if block, rest = pem.Decode(rest); block == nil {
				return Authorities{}, errors.New("it is not PEM, or has something behind its certificates")
			}
			if block.Type != "CERTIFICATE" {
				return Authorities{}, fmt.Errorf("it has a %.40q; certificates alone belong there", block.Type)
			}
			certificate, err := x509.ParseCertificate(block.Bytes)
			if err != nil {
				return Authorities{}, fmt.Errorf("certificate %d: %w", len(seen)+1, err)
			}
			if certificate.BasicConstraintsValid && !certificate.IsCA {
				return Authorities{}, fmt.Errorf("certificate %d, of %.100q, is not that of an authority", len(seen)+1, certificate.Subject)
			}
			some, rest = true, bytes.TrimSpace(rest)
			if sum := sha256.Sum256(block.Bytes); !seen[sum] {
				seen[sum] = true
				bundle = append(bundle, pem.EncodeToMemory(&pem.Block{Type: block.Type, Bytes: block.Bytes})...)
			}
			if len(seen) > MaxAuthorities || len(bundle) > MaxAuthoritiesSize {
				return Authorities{}, fmt.Errorf("gateways take %d certificates and %d bytes of one bundle", MaxAuthorities, MaxAuthoritiesSize)
			}
		}
		if !some {
			return Authorities{}, errors.New("there is no certificate in it")
		}
	}
	return Authorities{PEM: string(bundle)}, nil
}

// Name identifies the content.
func (a Authorities) Name() string { return fmt.Sprintf("%.16x", sha256.Sum256([]byte(a.PEM))) }

var authoritiesForm = regexp.MustCompile(`^[0-9a-f]{32}$`)

func validAuthorities(name string) error {
	if !authoritiesForm.MatchString(name) {
		return fmt.Errorf("%.100q is not the name of a bundle of authorities", name)
	}
	return nil
}

func (a Authorities) validate() error {
	same, err := ReadAuthorities(a.PEM)
	if err == nil && same != a {
		err = errors.New("it is not written as publishers write it")
	}
	if err != nil {
		return fmt.Errorf("authorities: %w", err)
	}
	return nil
}

func (l Listener) validChecks() error {
	if len(l.Checks) > 0 && (!l.TLS || l.TCP) || len(l.Checks) > maxChecks {
		return fmt.Errorf("port %d has no TLS to check clients in, or more than %d checks", l.Port, maxChecks)
	}
	for i, check := range l.Checks {
		if err := validAuthorities(check.Authorities); err != nil {
			return err
		}
		for _, other := range l.Checks[:i] {
			if Overlap(check.Gateways, other.Gateways) && !check.Same(&other) {
				return fmt.Errorf("port %d of a gateway has two checks of clients", l.Port)
			}
		}
	}
	return nil
}

// Overlap reports whether two lists of gateways, of which an empty one means all, have one in common.
func Overlap(a, b []string) bool {
	return len(a) == 0 || len(b) == 0 || slices.ContainsFunc(a, func(one string) bool { return slices.Contains(b, one) })
}
