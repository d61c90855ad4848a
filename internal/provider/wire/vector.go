package wire

import (
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"strconv"

	"github.com/go-json-experiment/json/jsontext"
)

// Vector reads a vector as servers write it: a list of numbers, or the base64 of little-endian
// 32-bit numbers. null is no number: that is how some write one that is none.
func Vector(raw []byte) ([]float32, error) {
	value := jsontext.Value(raw)
	if err := value.Compact(); err != nil {
		return nil, errors.New("a vector that is no JSON")
	}
	switch value.Kind() {
	case '"':
		text, err := jsontext.AppendUnquote(nil, []byte(value))
		if err != nil {
			return nil, errors.New("a vector that is no text")
		}
		return packed(text)
	case '[':
		return numbers(value)
	default:
		return nil, errors.New("no vector where one belongs")
	}
}

func packed(text []byte) ([]float32, error) {
	data := make([]byte, base64.StdEncoding.DecodedLen(len(text)))
	n, err := base64.StdEncoding.Decode(data, text)
	if err != nil || n%4 != 0 || n/4 > maxDimensions {
		return nil, errors.New("a vector whose base64 is none")
	}
	out := make([]float32, n/4)
	for i := range out {
		out[i] = math.Float32frombits(binary.LittleEndian.Uint32(data[4*i:]))
	}
	return out, nil
}

// numbers reads a compact list: what is not a number between its commas is refused, a list in the
// list too.
func numbers(list []byte) ([]float32, error) {
	list = list[1 : len(list)-1]
	var out []float32
	for len(list) > 0 {
		end := 0
		for end < len(list) && list[end] != ',' {
			end++
		}
		x, err := strconv.ParseFloat(string(list[:end]), 32)
		if err != nil {
			return nil, fmt.Errorf("a vector with %s in it", Clip(string(list[:end]), 40))
		}
		if len(out) == maxDimensions {
			return nil, fmt.Errorf("a vector of more than %d dimensions", maxDimensions)
		}
		out = append(out, float32(x))
		list = list[min(end+1, len(list)):]
	}
	return out, nil
}
