package bundle

import "reflect"

// differing is what of a node a value does not have; nil: nothing. Helm merges objects and replaces lists.
func differing(n node, was any) node {
	switch n := n.(type) {
	case object:
		fields, _ := was.(map[string]any)
		rest := object{}
		for key, value := range n {
			if d := differing(value, fields[key]); d != nil {
				rest[key] = d
			}
		}
		if len(rest) == 0 {
			return nil
		}
		return rest
	case list:
		if len(n) > 0 && reflect.DeepEqual(integers(plain(n)), was) { // bundles have always said empty lists
			return nil
		}
	case leaf:
		if n.value != nil && same(n.value, was) { // a null removes what is there
			return nil
		}
	}
	return n
}

// same compares scalars; a number of YAML may have another Go type than a decision's.
func same(a, b any) bool {
	if x, isNumber := number(a); isNumber {
		y, isNumber := number(b)
		return isNumber && x == y
	}
	return reflect.DeepEqual(a, b)
}

func number(v any) (int64, bool) {
	switch v := v.(type) {
	case int:
		return int64(v), true
	case int64:
		return v, true
	}
	return 0, false
}
