package host

import (
	"context"
	"errors"
	"net"
	"net/http"
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

type metadataService struct {
	url    string
	client *http.Client
}

func newMetadataService(o Options) metadataService {
	transport := o.Transport
	if transport == nil {
		dialer := net.Dialer{Timeout: 3 * time.Second}
		transport = &http.Transport{
			// No proxy: the address is link-local, and a proxy would answer for another server.
			DialContext: func(ctx context.Context, _, address string) (net.Conn, error) {
				return dialer.DialContext(ctx, "tcp4", address)
			},
			DisableKeepAlives: true,
		}
	}
	return metadataService{
		url:    strings.TrimRight(or(o.MetadataURL, "http://169.254.169.254"), "/") + "/" + metadataPath,
		client: &http.Client{Transport: transport, Timeout: metadataTimeout},
	}
}

// read asks until an answer comes that will not change: a 404 stays one, a refused connection may not.
func (s metadataService) read(ctx context.Context) ([]byte, error) {
	pause := metadataPause
	for try := 1; ; try++ {
		content, again, err := s.ask(ctx)
		if err == nil || !again || try == metadataTries {
			return content, err
		}
		if !sleep(ctx, pause, nil) {
			return nil, err
		}
		pause *= 2
	}
}

func (s metadataService) ask(ctx context.Context) (content []byte, again bool, err error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, s.url, nil)
	if err != nil {
		return nil, false, volume.Errorf(volume.InvalidArgument, "the metadata service's address %q: %w", s.url, err)
	}
	response, err := s.client.Do(request)
	if err != nil {
		return nil, true, volume.Errorf(volume.Unavailable, "ask the metadata service: %w", err)
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		again = response.StatusCode == http.StatusTooManyRequests || response.StatusCode >= http.StatusInternalServerError
		return nil, again, volume.Errorf(volume.Unavailable, "the metadata service answers %s to GET %s", response.Status, s.url)
	}
	content, err = readBounded(response.Body)
	if err != nil {
		var tooLong *volume.Error
		return nil, !errors.As(err, &tooLong), volume.Errorf(volume.Unavailable, "read the metadata service's answer: %w", err)
	}
	return content, false, nil
}
