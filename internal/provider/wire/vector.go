package wire

import (
	"encoding/json"
	"errors"
	"fmt"
)

// Vector reads a vector, a list of numbers. It refuses null, which some servers write for NaN.
func Vector(raw []byte) ([]float32, error) {
	var numbers []*float32
	switch err := json.Unmarshal(raw, &numbers); {
	case err != nil:
		return nil, errors.New("no vector where one belongs")
	case len(numbers) > maxDimensions:
		return nil, fmt.Errorf("a vector of more than %d dimensions", maxDimensions)
	}
	out := make([]float32, len(numbers))
	for i, number := range numbers {
		if number == nil {
			return nil, errors.New("a vector with null in it")
		}
		out[i] = *number
	}
	return out, nil
}
