package openstacksim

const hintsKey = "OS-SCH-HNT:scheduler_hints"

// checkHints checks the scheduler hints of a create as the schema of Cinder does. They have no effect: the default filters of
// Cinder do not use them.
func (c *call) checkHints() {
	body := c.decode()
	if body[hintsKey] == nil {
		return
	}
	hints, ok := body[hintsKey].(map[string]any)
	if !ok {
		panic(invalid(hintsKey, body[hintsKey], python(body[hintsKey])+" is not of type 'object', 'null'"))
	}
	for _, key := range sortedKeys(hints) {
		fits := true
		switch key {
		case "local_to_instance":
			fits = hints[key] == nil || isUUIDText(hints[key])
		case "same_host", "different_host":
			fits = isUUIDText(hints[key]) || areUUIDs(hints[key])
		case "query":
			_, isText := hints[key].(string)
			_, isObject := hints[key].(map[string]any)
			if !isText && !isObject {
				panic(invalid(key, hints[key], python(hints[key])+" is not of type 'string', 'object'"))
			}
		}
		if !fits {
			panic(invalid(key, hints[key], python(hints[key])+" is not valid under any of the given schemas"))
		}
	}
}

func isUUIDText(v any) bool {
	s, ok := v.(string)
	return ok && isUUID(s)
}

// areUUIDs reports whether v is a list of UUIDs, none twice.
func areUUIDs(v any) bool {
	list, ok := v.([]any)
	seen := map[any]bool{}
	for _, item := range list {
		if !isUUIDText(item) || seen[item] {
			return false
		}
		seen[item] = true
	}
	return ok
}
