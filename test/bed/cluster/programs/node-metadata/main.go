// Command node-metadata is the metadata service of a node at its usual address. It passes each request on to the metadata service of the OpenStack
// bed, which expects the server's name first in the path.
//
//	node-metadata 169.254.169.254:80 http://BED:8780/SERVER
package main

import (
	"log"
	"net/http"
	"net/http/httputil"
	"net/url"
	"os"
)

func main() {
	if len(os.Args) != 3 {
		log.Fatal("usage: node-metadata ADDRESS URL")
	}
	target, err := url.Parse(os.Args[2])
	if err != nil {
		log.Fatal(err)
	}
	proxy := &httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(target) },
		// The bed is on this machine; a proxy of the environment is not asked.
		Transport: &http.Transport{},
	}
	log.Fatal(http.ListenAndServe(os.Args[1], proxy))
}
