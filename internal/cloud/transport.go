package cloud

import (
	"crypto/tls"
	"crypto/x509"
	"net"
	"net/http"
	"os"
	"time"
)

// NewTransport makes the HTTP transport that Connect uses where it is given none: the settings' TLS, proxies from the
// environment, and as many kept connections as there are workers in the sidecars, so that handshakes are not repeated under load.
// Errors: ErrBadFile.
func NewTransport(s Settings) (*http.Transport, error) {
	config, err := s.tlsConfig()
	if err != nil {
		return nil, err
	}
	return &http.Transport{
		Proxy:                 http.ProxyFromEnvironment,
		DialContext:           (&net.Dialer{Timeout: 10 * time.Second, KeepAlive: 30 * time.Second}).DialContext,
		TLSClientConfig:       config,
		TLSHandshakeTimeout:   10 * time.Second,
		ForceAttemptHTTP2:     true,
		MaxIdleConns:          400,
		MaxIdleConnsPerHost:   128,
		IdleConnTimeout:       60 * time.Second, // below the usual 75 s and more of proxies, which would close them under us
		ResponseHeaderTimeout: 3 * time.Minute,  // Nova answers an attach only once the host did

		MaxResponseHeaderBytes: 64 << 10, // Keystone's largest tokens, which come in a header, have 16 KiB; net/http's default is 10 MiB
	}, nil
}

func (s Settings) tlsConfig() (*tls.Config, error) {
	config := &tls.Config{MinVersion: tls.VersionTLS12, InsecureSkipVerify: s.Insecure} //nolint:gosec // only when asked for by name
	if s.CACertFile != "" {
		pem, err := os.ReadFile(s.CACertFile)
		if err != nil {
			return nil, errorf(ErrBadFile, "cloud %s: CA file: %w", s.Name, err)
		}
		config.RootCAs = x509.NewCertPool()
		if !config.RootCAs.AppendCertsFromPEM(pem) {
			return nil, errorf(ErrBadFile, "cloud %s: CA file %s holds no PEM certificate", s.Name, s.CACertFile)
		}
	}
	if s.CertFile != "" {
		pair, err := tls.LoadX509KeyPair(s.CertFile, s.KeyFile)
		if err != nil {
			return nil, errorf(ErrBadFile, "cloud %s: client certificate %s: %w", s.Name, s.CertFile, err)
		}
		config.Certificates = []tls.Certificate{pair}
	}
	return config, nil
}
