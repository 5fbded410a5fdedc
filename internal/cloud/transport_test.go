package cloud

import (
	"net/http"
	"net/http/httptest"
	"testing"
)

// A server that refuses a stream and then has no place for another makes net/http dial again within one request, 19,000 times in a minute.
func TestACloudThatOffersHTTP2IsAskedOverHTTP1(t *testing.T) {
	t.Parallel()
	proto := make(chan string, 1)
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { proto <- r.Proto }))
	server.EnableHTTP2 = true
	server.StartTLS()
	defer server.Close()
	transport, err := newTransport(Settings{Insecure: true})
	if err != nil {
		t.Fatal(err)
	}
	defer transport.CloseIdleConnections()
	resp, err := (&http.Client{Transport: transport}).Get(server.URL)
	if err != nil {
		t.Fatal(err)
	}
	_ = resp.Body.Close()
	if got := <-proto; got != "HTTP/1.1" {
		t.Errorf("want HTTP/1.1, got %s", got)
	}
}
