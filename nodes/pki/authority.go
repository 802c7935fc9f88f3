// Package pki makes the certificates of a cluster: four authorities that do not trust each other, and the certificates that they issue.
//
// Keys are EC P-256 (fast to make and to verify; every part of Kubernetes and etcd takes them). An authority lives ten years, and a certificate two years.
// A bundle issues a certificate again that has less than RenewBefore left, or whose names no longer fit. It leaves all others byte for byte as they are,
// so that nothing is restarted without need.
package pki

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net/netip"
	"slices"
	"time"
)

// Lifetimes of authorities and certificates.
const (
	AuthorityLifetime   = 10 * 365 * 24 * time.Hour
	CertificateLifetime = 2 * 365 * 24 * time.Hour
	RenewBefore         = 90 * 24 * time.Hour
	skew                = 5 * time.Minute // clocks of nodes may be behind ours
)

// Pair is a certificate and its private key, both PEM.
type Pair struct {
	Certificate []byte `json:"certificate"`
	Key         []byte `json:"key"`
}

// Usage is the permitted use of a certificate.
type Usage int

// The usages; they can be added.
const (
	Client Usage = 1 << iota
	Server
)

// Request describes a certificate.
type Request struct {
	CommonName   string   // the user name for etcd and Kubernetes
	Organization []string // the groups for Kubernetes
	DNS          []string
	IP           []netip.Addr
	Usage        Usage
	Lifetime     time.Duration // CertificateLifetime when 0
}

// Authority issues certificates.
type Authority struct {
	Certificate []byte // PEM

	others      []byte // PEM of further authorities in whose place it is or comes
	certificate *x509.Certificate
	key         *ecdsa.PrivateKey
}

// NewAuthority makes an authority with a new key.
func NewAuthority(name string, now time.Time) (*Authority, Pair, error) {
	key, keyPEM, err := NewKey()
	if err != nil {
		return nil, Pair{}, err
	}
	serial, err := serialNumber()
	if err != nil {
		return nil, Pair{}, err
	}
	template := &x509.Certificate{
		SerialNumber:          serial,
		Subject:               pkix.Name{CommonName: name},
		NotBefore:             now.Add(-skew),
		NotAfter:              now.Add(AuthorityLifetime),
		IsCA:                  true,
		BasicConstraintsValid: true,
		MaxPathLenZero:        true,
		KeyUsage:              x509.KeyUsageCertSign | x509.KeyUsageCRLSign | x509.KeyUsageDigitalSignature,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return nil, Pair{}, fmt.Errorf("make authority %s: %w", name, err)
	}
	pair := Pair{Certificate: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), Key: keyPEM}
	authority, err := LoadAuthority(pair)
	return authority, pair, err
}

// LoadAuthority reads an authority that NewAuthority made.
func LoadAuthority(pair Pair) (*Authority, error) {
	certificate, err := parseCertificate(pair.Certificate)
	if err != nil {
		return nil, fmt.Errorf("read an authority: %w", err)
	}
	key, err := parseKey(pair.Key)
	if err != nil {
		return nil, fmt.Errorf("read the key of authority %s: %w", certificate.Subject.CommonName, err)
	}
	return &Authority{Certificate: pair.Certificate, certificate: certificate, key: key}, nil
}

// Trusted is the list of authorities to trust, as PEM: the authority's certificate, and during a rotation also the former or next authority's.
func (a *Authority) Trusted() []byte {
	if len(a.others) == 0 {
		return a.Certificate
	}
	return slices.Concat(bytes.TrimRight(a.Certificate, "\n"), []byte("\n"), a.others)
}

// Issue makes a key and a certificate for it.
func (a *Authority) Issue(request Request, now time.Time) (Pair, error) {
	key, keyPEM, err := NewKey()
	if err != nil {
		return Pair{}, err
	}
	serial, err := serialNumber()
	if err != nil {
		return Pair{}, err
	}
	lifetime := request.Lifetime
	if lifetime == 0 {
		lifetime = CertificateLifetime
	}
	template := &x509.Certificate{
		SerialNumber:          serial,
		Subject:               pkix.Name{CommonName: request.CommonName, Organization: request.Organization},
		NotBefore:             now.Add(-skew),
		NotAfter:              now.Add(lifetime),
		BasicConstraintsValid: true,
		KeyUsage:              x509.KeyUsageDigitalSignature,
		ExtKeyUsage:           request.Usage.extended(),
		DNSNames:              request.DNS,
	}
	for _, ip := range request.IP {
		template.IPAddresses = append(template.IPAddresses, ip.AsSlice())
	}
	der, err := x509.CreateCertificate(rand.Reader, template, a.certificate, key.Public(), a.key)
	if err != nil {
		return Pair{}, fmt.Errorf("issue a certificate for %s: %w", request.CommonName, err)
	}
	return Pair{Certificate: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), Key: keyPEM}, nil
}

// Fits is true if a pair fits the request, was issued by this authority and stays good for a while.
func (a *Authority) Fits(pair Pair, request Request, now time.Time) bool {
	certificate, err := parseCertificate(pair.Certificate)
	if err != nil || certificate.CheckSignatureFrom(a.certificate) != nil {
		return false
	}
	if _, err := parseKey(pair.Key); err != nil {
		return false
	}
	var ips []netip.Addr
	for _, raw := range certificate.IPAddresses {
		ip, _ := netip.AddrFromSlice(raw)
		ips = append(ips, ip.Unmap())
	}
	return certificate.Subject.CommonName == request.CommonName &&
		slices.Equal(certificate.Subject.Organization, request.Organization) &&
		slices.Equal(certificate.DNSNames, request.DNS) &&
		slices.Equal(ips, request.IP) &&
		slices.Equal(certificate.ExtKeyUsage, request.Usage.extended()) &&
		certificate.NotAfter.Sub(now) > RenewBefore
}

func (u Usage) extended() []x509.ExtKeyUsage {
	var usages []x509.ExtKeyUsage
	if u&Server != 0 {
		usages = append(usages, x509.ExtKeyUsageServerAuth)
	}
	if u&Client != 0 {
		usages = append(usages, x509.ExtKeyUsageClientAuth)
	}
	return usages
}

// NewKey makes an EC P-256 key and its PEM form (PKCS #8 would do too; SEC 1 is the form that the service account code prefers).
func NewKey() (*ecdsa.PrivateKey, []byte, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, nil, fmt.Errorf("make a key: %w", err)
	}
	der, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		return nil, nil, fmt.Errorf("encode a key: %w", err)
	}
	return key, pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: der}), nil
}

// PublicKey returns the public half of a PEM key that NewKey made, as PEM. A public half is its own.
func PublicKey(keyPEM []byte) ([]byte, error) {
	der, err := publicKey(keyPEM)
	if err != nil {
		return nil, err
	}
	return pem.EncodeToMemory(&pem.Block{Type: publicKeyType, Bytes: der}), nil
}

// publicKeyType is the type of a PEM block with a public key.
const publicKeyType = "PUBLIC KEY"

// publicKey returns the public half of a PEM key as DER (PKIX).
func publicKey(keyPEM []byte) ([]byte, error) {
	if block, _ := pem.Decode(keyPEM); block != nil && block.Type == publicKeyType {
		parsed, err := x509.ParsePKIXPublicKey(block.Bytes)
		if _, is := parsed.(*ecdsa.PublicKey); err == nil && !is {
			err = fmt.Errorf("no key of elliptic curves")
		}
		if err != nil {
			return nil, fmt.Errorf("read a public key: %w", err)
		}
		return x509.MarshalPKIXPublicKey(parsed)
	}
	key, err := parseKey(keyPEM)
	if err != nil {
		return nil, err
	}
	der, err := x509.MarshalPKIXPublicKey(key.Public())
	if err != nil {
		return nil, fmt.Errorf("encode a public key: %w", err)
	}
	return der, nil
}

func parseCertificate(text []byte) (*x509.Certificate, error) {
	block, _ := pem.Decode(text)
	if block == nil || block.Type != "CERTIFICATE" {
		return nil, fmt.Errorf("no PEM certificate")
	}
	return x509.ParseCertificate(block.Bytes)
}

func parseKey(text []byte) (*ecdsa.PrivateKey, error) {
	block, _ := pem.Decode(text)
	if block == nil || block.Type != "EC PRIVATE KEY" {
		return nil, fmt.Errorf("no PEM key of type EC PRIVATE KEY")
	}
	return x509.ParseECPrivateKey(block.Bytes)
}

// serialNumber draws 127 random bits, as RFC 5280 wants serial numbers unique, positive and at most 20 bytes long.
func serialNumber() (*big.Int, error) {
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 127))
	if err != nil {
		return nil, fmt.Errorf("draw a serial number: %w", err)
	}
	return serial.Add(serial, big.NewInt(1)), nil
}
