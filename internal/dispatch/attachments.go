package dispatch

// Upload is an image for a message that follows.
type Upload struct {
	Name string `json:"name"` // for people and for models that see no images; without a path
	Data []byte `json:"data" required:"true"`
}
