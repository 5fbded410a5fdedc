package cloud

import (
	"crypto/tls"
	"crypto/x509"
	"net"
	"net/http"
	"os"
	"time"
)

// newTransport makes the HTTP transport that Connect uses by default. It applies the TLS settings and the proxy of the
// environment. It keeps as many connections as the sidecars have workers, so that load causes no repeated handshakes. It does not speak HTTP/2:
// no cloud needs that, and a server of it can make one request open connections without end. Errors: ErrBadFile.
func newTransport(s Settings) (*http.Transport, error) {
	config, err := s.tlsConfig()
	if err != nil {
		return nil, err
	}
	protocols := new(http.Protocols)
	protocols.SetHTTP1(true)
	return &http.Transport{
		Protocols:             protocols,
		Proxy:                 http.ProxyFromEnvironment,
		DialContext:           (&net.Dialer{Timeout: 10 * time.Second, KeepAlive: 30 * time.Second}).DialContext,
		TLSClientConfig:       config,
		TLSHandshakeTimeout:   10 * time.Second,
		MaxIdleConns:          400,
		MaxIdleConnsPerHost:   128,
		IdleConnTimeout:       60 * time.Second, // proxies close idle connections after 75 s or more; this is earlier
		ResponseHeaderTimeout: 3 * time.Minute,  // Nova replies to an attach after the compute host does

		MaxResponseHeaderBytes: 64 << 10, // the largest Keystone tokens, which are a header, have 16 KiB; the default of net/http is 10 MiB
	}, nil
}

func (s Settings) tlsConfig() (*tls.Config, error) {
	config := &tls.Config{MinVersion: tls.VersionTLS12, InsecureSkipVerify: s.Insecure} //nolint:gosec // only if the settings say so
	if s.CACertFile != "" {
		pem, err := os.ReadFile(s.CACertFile)
		if err != nil {
			return nil, s.caMissing(err)
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
