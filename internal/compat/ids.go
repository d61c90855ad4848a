package compat

import (
	"crypto/sha256"
	"encoding/base64"
	"strings"

	"github.com/regie-run/regie"
)

// Ids that clients are given name what is stored, so that nothing need be looked up for them: a
// call and its session, a round, its place and its session. An item of a response is a call, or the
// message of a round.
const (
	callPrefix     = "call_"
	responsePrefix = "resp_"
	callItemPrefix = "fc_"
	messagePrefix  = "msg_"
)

// packID writes two ids and a number of three bytes, or none, behind a prefix.
func packID(prefix string, first, second regie.ID, more ...byte) string {
	data := append(append(append([]byte{}, first[:]...), second[:]...), more...)
	return prefix + base64.RawURLEncoding.EncodeToString(data)
}

// unpackID reads what packID wrote; ok is false for what another program has made.
func unpackID(prefix, text string, size int) (first, second regie.ID, more []byte, ok bool) {
	data, err := base64.RawURLEncoding.Strict().DecodeString(strings.TrimPrefix(text, prefix))
	if err != nil || len(data) != 32+size || !strings.HasPrefix(text, prefix) {
		return first, second, nil, false
	}
	copy(first[:], data)
	copy(second[:], data[16:])
	return first, second, data[32:], true
}

func callID(session, call regie.ID) string { return packID(callPrefix, session, call) }

func parseCallID(text string) (session, call regie.ID, ok bool) {
	session, call, _, ok = unpackID(callPrefix, text, 0)
	return session, call, ok
}

// responseID names a round; number is how many rounds its session had with it.
func responseID(session, round regie.ID, number int) string {
	return packID(responsePrefix, session, round, byte(number>>16), byte(number>>8), byte(number))
}

func parseResponseID(text string) (session, round regie.ID, number int, ok bool) {
	session, round, more, ok := unpackID(responsePrefix, text, 3)
	if ok {
		number = int(more[0])<<16 | int(more[1])<<8 | int(more[2])
	}
	return session, round, number, ok
}

func messageID(round regie.ID) string { return messagePrefix + round.String() }

func itemID(call *regie.Call) string { return packID(callItemPrefix, call.RoundID, call.ID) }

// parseItemID reads the id of an item; call is zero for the message of a round.
func parseItemID(text string) (round, call regie.ID, ok bool) {
	if id, is := strings.CutPrefix(text, messagePrefix); is {
		round, err := regie.ParseID(id)
		return round, call, err == nil
	}
	round, call, _, ok = unpackID(callItemPrefix, text, 0)
	return round, call, ok
}

// idOf makes an id of words: the same each time.
func idOf(words ...string) (id regie.ID) {
	sum := sha256.Sum256([]byte("regie compat\x00" + strings.Join(words, "\x00")))
	copy(id[:], sum[:])
	id[6], id[8] = id[6]&0x0f|0x80, id[8]&0x3f|0x80 // a UUIDv8
	return id
}
