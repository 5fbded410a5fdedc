package host

import (
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

// How long the metadata service is asked. It is local to the hypervisor: it answers at once, or is not there, or its proxy is just
// starting.
const (
	metadataTries   = 4
	metadataTimeout = 5 * time.Second
	metadataPause   = 500 * time.Millisecond
)

// The addresses of the metadata service (Nova, "Metadata service"): the IPv6 one is of the link, so an interface belongs to it.
const (
	metadataIPv4 = "http://169.254.169.254"
	metadataIPv6 = "http://[fe80::a9fe:a9fe%%25%s]"
)

type metadataService struct {
	urls   func() []string // where it may be; the first that answers counts
	client *http.Client
}

func newMetadataService(o Options) metadataService {
	urls, transport := func() []string { return []string{or(o.MetadataURL, metadataIPv4)} }, o.Transport
	if transport == nil {
		if o.MetadataURL == "" {
			urls = linkLocalURLs
		}
		dialer := net.Dialer{Timeout: 3 * time.Second}
		transport = &http.Transport{
			// No proxy: the address is link-local, and a proxy would answer for another server.
			DialContext:       dialer.DialContext,
			DisableKeepAlives: true,
			// As the content, the head is somebody's who may not be the metadata service.
			MaxResponseHeaderBytes: 64 << 10,
		}
	}
	return metadataService{urls: urls, client: &http.Client{
		Transport: transport, Timeout: metadataTimeout,
		// The service redirects nobody; what does could lead the node to any address that it reaches.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}
}

// linkLocalURLs are the service's addresses on this machine: IPv4's, and IPv6's on each interface that could reach it.
func linkLocalURLs() []string {
	urls := []string{metadataIPv4}
	interfaces, _ := net.Interfaces()
	for _, i := range interfaces {
		if i.Flags&net.FlagUp == 0 || i.Flags&(net.FlagLoopback|net.FlagPointToPoint) != 0 {
			continue
		}
		// A node has an interface for each pod too; those have no hardware behind them.
		if _, err := os.Stat(filepath.Join("/sys/class/net", i.Name, "device")); err == nil {
			urls = append(urls, fmt.Sprintf(metadataIPv6, i.Name))
		}
	}
	return urls
}

func (s metadataService) read(ctx context.Context) (Identity, error) {
	content, err := s.content(ctx)
	if err != nil {
		return Identity{}, err
	}
	return parseMetadata(content)
}

// content asks until an answer comes that will not change: a 404 stays one, a refused connection may not.
func (s metadataService) content(ctx context.Context) ([]byte, error) {
	pause := metadataPause
	for try := 1; ; try++ {
		content, again, err := s.askAll(ctx)
		if err == nil || !again || try == metadataTries {
			return content, err
		}
		if !sleep(ctx, pause) {
			return nil, err
		}
		pause *= 2
	}
}

// askAll asks one address after another until one answers; that answer counts, whatever it is.
func (s metadataService) askAll(ctx context.Context) (content []byte, again bool, err error) {
	var reasons []error
	for _, url := range s.urls() {
		content, again, err := s.ask(ctx, strings.TrimRight(url, "/")+"/"+metadataPath)
		if err == nil || !again {
			return content, false, err
		}
		reasons = append(reasons, err)
	}
	return nil, true, volume.Errorf(volume.Unavailable, "%w", errors.Join(reasons...))
}

func (s metadataService) ask(ctx context.Context, url string) (content []byte, again bool, err error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return nil, false, volume.Errorf(volume.InvalidArgument, "the metadata service's address %q: %w", url, err)
	}
	response, err := s.client.Do(request)
	if err != nil {
		return nil, true, volume.Errorf(volume.Unavailable, "ask the metadata service: %w", err)
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		again = response.StatusCode == http.StatusTooManyRequests || response.StatusCode >= http.StatusInternalServerError
		return nil, again, volume.Errorf(volume.Unavailable, "the metadata service answers %s to GET %s", response.Status, url)
	}
	content, err = readBounded(response.Body)
	if err != nil {
		var tooLong *volume.Error
		return nil, !errors.As(err, &tooLong), volume.Errorf(volume.Unavailable, "read the metadata service's answer: %w", err)
	}
	return content, false, nil
}
