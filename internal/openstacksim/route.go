package openstacksim

import (
	"net/http"
	"strings"
)

// route is one request of an API: its method, its path, its first minor microversion and its handler.
type route struct {
	method, path string // path after the version and the project: volumes/{id}/action
	since        int
	serve        func(*Sim, *call) reply
}

// show is the handler of a request that shows one object.
func show(key string, object func(*Sim, *call) any) func(*Sim, *call) reply {
	return func(s *Sim, c *call) reply { return reply{status: http.StatusOK, body: obj{{key, object(s, c)}}} }
}

// answer serves a request. A check that refuses it panics with the reply, as the services raise exceptions that their APIs turn into answers.
func (r route) answer(s *Sim, c *call) (a reply) {
	defer func() {
		switch refusal := recover().(type) {
		case nil:
		case reply:
			a = refusal
		default:
			panic(refusal)
		}
	}()
	return r.serve(s, c)
}

// dispatch finds the route of a path and serves it. If only later microversions have the path, the reply is itemNotFound.
func (s *Sim) dispatch(c *call, routes []route, path string) reply {
	for _, r := range routes {
		vars, ok := match(r.path, path)
		if !ok || r.method != c.Method {
			continue
		}
		if c.version < r.since {
			return fault(http.StatusNotFound, notFoundMessage)
		}
		c.vars = vars
		return r.answer(s, c)
	}
	c.echo = "" // without a controller, no microversion is in the reply
	return noRoute()
}

// match compares a path with a pattern segment by segment; {name} matches any one segment.
func match(pattern, path string) (map[string]string, bool) {
	want, got := strings.Split(pattern, "/"), strings.Split(path, "/")
	if len(want) != len(got) {
		return nil, false
	}
	vars := map[string]string{}
	for i, w := range want {
		if strings.HasPrefix(w, "{") {
			if got[i] == "" {
				return nil, false
			}
			vars[strings.Trim(w, "{}")] = got[i]
			continue
		}
		if w != got[i] {
			return nil, false
		}
	}
	return vars, true
}
