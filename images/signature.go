package images

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/asn1"
	"encoding/base64"
	"encoding/hex"
	"encoding/pem"
	"errors"
	"fmt"
	"os"
	"slices"
)

// signedBy is the signer of a project's files.
type signedBy struct {
	// Identity is the signer's e-mail address or URI in the certificate, Issuer who has vouched for it.
	Identity string `yaml:"identity"`
	Issuer   string `yaml:"issuer"`
}

// issuerExtension has the issuer's address (https://github.com/sigstore/fulcio/blob/main/docs/oid-info.md).
var issuerExtension = asn1.ObjectIdentifier{1, 3, 6, 1, 4, 1, 57264, 1, 1}

// checkSignature checks a signature that cosign made without a key of its own: a certificate of some minutes names the signer. It is checked for the time
// when it began; that the signature is of that time, which a public log records, is not checked.
func (p *prebuilt) checkSignature(ctx context.Context, published, sum string, by signedBy) error {
	signature, err := p.fetchSmall(ctx, published+".sig")
	if err != nil {
		return err
	}
	certificate, err := p.fetchSmall(ctx, published+".cert")
	if err != nil {
		return err
	}
	roots, err := os.ReadFile(p.options.Roots)
	if err != nil {
		return fmt.Errorf("read the certificates to check it under: %w", err)
	}
	return verifySignature(sum, signature, certificate, roots, by)
}

// verifySignature takes signature and certificate as they are published, in Base64.
func verifySignature(sum string, signature, certificate, roots []byte, by signedBy) error {
	digest, err := hex.DecodeString(sum)
	if err != nil {
		return err
	}
	raw, err := base64.StdEncoding.DecodeString(string(bytes.TrimSpace(signature)))
	if err != nil {
		return fmt.Errorf("it is no Base64: %w", err)
	}
	leaf, err := readCertificate(certificate)
	if err != nil {
		return err
	}
	anchors, between := x509.NewCertPool(), x509.NewCertPool()
	for block, rest := pem.Decode(roots); block != nil; block, rest = pem.Decode(rest) {
		one, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			return fmt.Errorf("read the certificates to check it under: %w", err)
		}
		if bytes.Equal(one.RawIssuer, one.RawSubject) {
			anchors.AddCert(one)
		} else {
			between.AddCert(one)
		}
	}
	if _, err := leaf.Verify(x509.VerifyOptions{Roots: anchors, Intermediates: between, CurrentTime: leaf.NotBefore, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageCodeSigning}}); err != nil {
		return fmt.Errorf("its certificate: %w", err)
	}
	names := slices.Clone(leaf.EmailAddresses)
	for _, uri := range leaf.URIs {
		names = append(names, uri.String())
	}
	if !slices.Contains(names, by.Identity) {
		return fmt.Errorf("it is of %q, and wanted is %s", names, by.Identity)
	}
	if !slices.ContainsFunc(leaf.Extensions, func(extension pkix.Extension) bool {
		return extension.Id.Equal(issuerExtension) && string(extension.Value) == by.Issuer
	}) {
		return fmt.Errorf("the certificate of %s is not by %s", by.Identity, by.Issuer)
	}
	key, ok := leaf.PublicKey.(*ecdsa.PublicKey)
	if !ok {
		return errors.New("its key is not ECDSA's")
	}
	if !ecdsa.VerifyASN1(key, digest, raw) {
		return errors.New("it does not fit the file")
	}
	return nil
}

// readCertificate reads PEM, which is published in Base64 or as it is.
func readCertificate(content []byte) (*x509.Certificate, error) {
	text := bytes.TrimSpace(content)
	if decoded, err := base64.StdEncoding.DecodeString(string(text)); err == nil {
		text = decoded
	}
	block, _ := pem.Decode(text)
	if block == nil {
		return nil, errors.New("its certificate is no PEM")
	}
	leaf, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		return nil, fmt.Errorf("its certificate: %w", err)
	}
	return leaf, nil
}
