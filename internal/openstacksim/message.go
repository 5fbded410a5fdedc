package openstacksim

import (
	"net/http"
	"slices"
	"time"
)

// message is a user message of Cinder: why something failed after the reply.
type message struct {
	id, project, kind, resource string
	event, content, request     string
	created                     time.Time
}

// messageLife is how long Cinder keeps a message.
const messageLife = 30 * 24 * time.Hour

func (s *Sim) addMessage(c *call, kind, resource, project, event, content string) {
	s.messages = append(s.messages, &message{
		id: s.newID(), project: project, kind: kind, resource: resource, event: event, content: content, request: c.id, created: now(),
	})
}

var messageFields = fields[*message]{
	"id":            func(m *message) string { return m.id },
	"created_at":    func(m *message) string { return sortTime(m.created) },
	"resource_uuid": func(m *message) string { return m.resource },
	"resource_type": func(m *message) string { return m.kind },
	"event_id":      func(m *message) string { return m.event },
	"request_id":    func(m *message) string { return m.request },
	"message_level": func(m *message) string { return "ERROR" },
}

func (m *message) view(c *call) obj {
	return obj{
		{"id", m.id},
		{"event_id", m.event},
		{"user_message", m.content},
		{"message_level", "ERROR"},
		{"created_at", micros(m.created)},
		{"guaranteed_until", micros(m.created.Add(messageLife))},
		{"request_id", m.request},
		{"links", c.selfLinks("messages", m.id)},
		{"resource_type", m.kind},
		{"resource_uuid", m.resource},
	}
}

func (s *Sim) ownMessages(c *call) []*message {
	return where(slices.Values(s.messages), func(m *message) bool {
		return m.project == c.token.project.ID && time.Since(m.created) < messageLife && time.Since(m.created) >= s.messageLag
	})
}

func (s *Sim) listMessages(c *call) reply {
	q := c.listQuery([]string{"resource_uuid", "resource_type", "event_id", "request_id", "message_level"}, []string{"id", "created_at", "event_id", "resource_type", "resource_uuid", "request_id", "message_level"})
	items, _, more, missing := page(q, s.ownMessages(c), messageFields, messageFields.match)
	if missing {
		return fault(http.StatusNotFound, "Message "+q.marker+" could not be found.")
	}
	body := pageBody("messages", items, func(m *message) obj { return m.view(c) })
	if more {
		body = append(body, pair{"messages_links", c.nextLink(c.collection("messages", false), items[len(items)-1].id)})
	}
	return reply{status: http.StatusOK, body: body}
}

func (s *Sim) oneMessage(c *call) *message {
	for _, m := range s.ownMessages(c) {
		if m.id == c.vars["id"] {
			return m
		}
	}
	panic(fault(http.StatusNotFound, "Message "+c.vars["id"]+" could not be found."))
}

func (s *Sim) deleteMessage(c *call) reply {
	m := s.oneMessage(c)
	s.messages = slices.DeleteFunc(s.messages, func(x *message) bool { return x == m })
	return reply{status: http.StatusNoContent, header: http.Header{"Content-Type": {"text/html; charset=UTF-8"}}}
}
