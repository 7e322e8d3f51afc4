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

// ClientCertificate is what the API server has to show to be answered. The zero value
// answers whoever reaches the port.
type ClientCertificate struct {
	// CAFile is a PEM file with the authorities of its certificate. It is read at each
	// connection, so that it may be replaced.
	CAFile string
	// Names are the common names that its certificate may have; any if there are none.
	Names []string
}

// check returns an error if the file cannot be used now.
func (c ClientCertificate) check() error {
	if c.CAFile == "" {
		if len(c.Names) > 0 {
			return fmt.Errorf("names of the API server's certificate (%s) need its authorities: set --webhook-client-ca", strings.Join(c.Names, ", "))
		}
		return nil
	}
	_, err := c.authorities()
	return err
}

func (c ClientCertificate) authorities() (*x509.CertPool, error) {
	pem, err := os.ReadFile(c.CAFile)
	if err != nil {
		return nil, fmt.Errorf("read the authorities of the API server's certificate, --webhook-client-ca: %w", err)
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(pem) {
		return nil, fmt.Errorf("there is no certificate in %s, --webhook-client-ca: give a PEM file", c.CAFile)
	}
	return pool, nil
}

// demand has a server ask for the certificate.
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

// verifyName is called when the chain of the certificate has been verified.
func (c ClientCertificate) verifyName(state tls.ConnectionState) error {
	if len(c.Names) == 0 {
		return nil
	}
	if len(state.PeerCertificates) == 0 {
		return errors.New("the caller shows no certificate")
	}
	if name := state.PeerCertificates[0].Subject.CommonName; !slices.Contains(c.Names, name) {
		return fmt.Errorf("the caller's certificate is of %.100q, not of %s", name, strings.Join(c.Names, ", "))
	}
	return nil
}
