package strict

import (
	"encoding/base64"
	"fmt"
	"slices"
	"strings"

	jsonv2 "github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// content is the content of a message in the APIs of OpenAI: a text, or a list of texts and images.
type content struct {
	text  string
	parts []contentPart
}

type contentPart struct {
	Type  string         `json:"type"`
	Text  *string        `json:"text"`
	Image jsontext.Value `json:"image_url"`
}

// UnmarshalJSON implements json.Unmarshaler.
func (c *content) UnmarshalJSON(data []byte) error {
	if jsontext.Value(data).Kind() == '[' {
		return decode(data, &c.parts)
	}
	return jsonv2.Unmarshal(data, &c.text)
}

func (c *content) isEmpty() bool { return c == nil || c.text == "" && len(c.parts) == 0 }

// checkParts checks a list: it is a user's, and has images. text and image are the types of its
// parts, and url is how one begins that holds the address of an image.
func (c *content) checkParts(role, text, image, url string) error {
	if c == nil || c.parts == nil {
		return nil
	}
	images := 0
	for i, p := range c.parts {
		switch {
		case p.Type == text && p.Text != nil && *p.Text != "" && p.Image == nil:
		case p.Type == image && p.Text == nil && strings.HasPrefix(string(p.Image), url+"data:"):
			images++
			kind, data, _ := strings.Cut(strings.TrimPrefix(string(p.Image), url+"data:"), ";base64,")
			if err := checkImage(kind, strings.TrimRight(data, `"}`)); err != nil {
				return fmt.Errorf("part %d: %w", i, err)
			}
		default:
			return fmt.Errorf("part %d: a malformed %q", i, p.Type)
		}
	}
	if role != "user" || images == 0 {
		return fmt.Errorf("a list of the %s with %d images", role, images)
	}
	return nil
}

// checkImage checks the type and the base64 of an image.
func checkImage(kind, data string) error {
	if !slices.Contains([]string{"image/png", "image/jpeg", "image/gif", "image/webp"}, kind) {
		return fmt.Errorf("an image of type %q", kind)
	}
	if raw, err := base64.StdEncoding.Strict().DecodeString(data); err != nil || len(raw) == 0 {
		return fmt.Errorf("an image that is no base64: %w", err)
	}
	return nil
}
