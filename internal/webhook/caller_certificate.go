package webhook

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
)

// ClientCertificate is the certificate that the API server must present. The zero value requires none.
type ClientCertificate struct {
	// CAFile is a PEM file with the certificate authorities, read at each connection.
	CAFile string
	// Names are the accepted common names; any if empty.
	Names []string
}

// check returns an error if the file is invalid.
func (c ClientCertificate) check() error {
	if c.CAFile == "" {
		if len(c.Names) > 0 {
			return fmt.Errorf("names of the API server's certificate (%s) require --webhook-client-ca", strings.Join(c.Names, ", "))
		}
		return nil
	}
	_, err := c.authorities()
	return err
}

func (c ClientCertificate) authorities() (*x509.CertPool, error) {
	pem, err := os.ReadFile(c.CAFile)
	if err != nil {
		return nil, fmt.Errorf("read --webhook-client-ca: %w", err)
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(pem) {
		return nil, fmt.Errorf("--webhook-client-ca %s has no certificate in PEM format", c.CAFile)
	}
	return pool, nil
}

// demand configures a server to require the certificate.
func (c ClientCertificate) demand(config *tls.Config) {
	if c.CAFile == "" {
		return
	}
	config.GetConfigForClient = func(*tls.ClientHelloInfo) (*tls.Config, error) {
		pool, err := c.authorities()
		if err != nil {
			return nil, err
		}
		demanding := config.Clone()
		demanding.GetConfigForClient = nil
		demanding.ClientAuth, demanding.ClientCAs = tls.RequireAndVerifyClientCert, pool
		demanding.VerifyConnection = c.verifyName
		return demanding, nil
	}
}

// verifyName checks the common name of a verified certificate.
func (c ClientCertificate) verifyName(state tls.ConnectionState) error {
	if len(c.Names) == 0 {
		return nil
	}
	if len(state.PeerCertificates) == 0 {
		return errors.New("the caller presents no certificate")
	}
	if name := state.PeerCertificates[0].Subject.CommonName; !slices.Contains(c.Names, name) {
		return fmt.Errorf("the caller's certificate is for %.100q, not for %s", name, strings.Join(c.Names, ", "))
	}
	return nil
}
