package metadata

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/cinder-csi/cinder-csi/driver/volume"
)

// How often and how long the driver asks the metadata service. The service is local to the hypervisor: it answers at
// once, or is not there, or its proxy is starting.
const (
	serviceTries   = 4
	serviceTimeout = 5 * time.Second
	serviceBackoff = 500 * time.Millisecond // doubled after each try
)

// The addresses of the metadata service (Nova, "Metadata service"). The IPv6 address is link-local, so it needs an
// interface.
const (
	serviceIPv4 = "http://169.254.169.254"
	serviceIPv6 = "http://[fe80::a9fe:a9fe%%25%s]"
)

type service struct {
	urls   func() []string // the possible addresses; the first that answers counts
	client *http.Client
}

func newService(o Options) service {
	urls, transport := func() []string { return []string{cmp.Or(o.URL, serviceIPv4)} }, o.Transport
	if transport == nil {
		if o.URL == "" {
			urls = linkLocalURLs
		}
		dialer := net.Dialer{Timeout: 3 * time.Second}
		transport = &http.Transport{
			// No proxy: the address is link-local, and a proxy would answer for another server.
			DialContext:       dialer.DialContext,
			DisableKeepAlives: true,
			// Like the body, the header may come from an attacker.
			MaxResponseHeaderBytes: 64 << 10,
		}
	}
	return service{urls: urls, client: &http.Client{
		Transport: transport, Timeout: serviceTimeout,
		// The service never redirects. An attacker could lead the node to any address that it reaches.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}
}

// linkLocalURLs are the addresses of the service on this machine: that of IPv4, and that of IPv6 on each interface that
// could reach it.
func linkLocalURLs() []string {
	urls := []string{serviceIPv4}
	interfaces, _ := net.Interfaces()
	for _, i := range interfaces {
		if i.Flags&net.FlagUp == 0 || i.Flags&(net.FlagLoopback|net.FlagPointToPoint) != 0 {
			continue
		}
		// A node also has an interface for each pod; those have no hardware.
		if _, err := os.Stat(filepath.Join("/sys/class/net", i.Name, "device")); err == nil {
			urls = append(urls, fmt.Sprintf(serviceIPv6, i.Name))
		}
	}
	return urls
}

func (s service) read(ctx context.Context) (Server, error) {
	content, err := s.content(ctx)
	if err != nil {
		return Server{}, err
	}
	return parseMetadata(content)
}

// content retries until an answer is final: a 404 stays one, a refused connection may not.
func (s service) content(ctx context.Context) ([]byte, error) {
	backoff := serviceBackoff
	for try := 1; ; try++ {
		content, retryable, err := s.getAny(ctx)
		if err == nil || !retryable || try == serviceTries {
			return content, err
		}
		if volume.Sleep(ctx, backoff) != nil {
			return nil, err
		}
		backoff *= 2
	}
}

// getAny tries one address after another until one answers. That answer counts, whatever it is.
func (s service) getAny(ctx context.Context) (content []byte, retryable bool, err error) {
	var reasons []error
	for _, url := range s.urls() {
		content, retryable, err := s.get(ctx, strings.TrimRight(url, "/")+"/"+metadataPath)
		if err == nil || !retryable {
			return content, false, err
		}
		reasons = append(reasons, err)
	}
	return nil, true, volume.Errorf(volume.Unavailable, "%w", errors.Join(reasons...))
}

func (s service) get(ctx context.Context, url string) (content []byte, retryable bool, err error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return nil, false, volume.Errorf(volume.InvalidArgument, "the address %q of the metadata service: %w", url, err)
	}
	response, err := s.client.Do(request)
	if err != nil {
		return nil, true, volume.Errorf(volume.Unavailable, "ask the metadata service: %w", err)
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		retryable = response.StatusCode == http.StatusTooManyRequests || response.StatusCode >= http.StatusInternalServerError
		return nil, retryable, volume.Errorf(volume.Unavailable, "the metadata service answers %s to GET %s", response.Status, url)
	}
	content, err = readBounded(response.Body)
	if err != nil {
		var tooLong *volume.Error
		return nil, !errors.As(err, &tooLong), volume.Errorf(volume.Unavailable, "read the answer of the metadata service: %w", err)
	}
	return content, false, nil
}
