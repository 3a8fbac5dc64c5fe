package llm

import (
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"hash/fnv"
	"math"
	"math/rand/v2"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"unicode"
)

// longest is the maximum number of words of an answer.
const longest = 8192

// opening is the beginning of every answer.
const opening = "This is a simulated model: nothing is computed."

// sentences are those that follow, each with a word of the prompt.
var sentences = []string{
	"Your prompt mentions “%s”.",
	"A real model would now say something about “%s”.",
	"The word “%s” was picked from your prompt without understanding it.",
	"To ask a real model about “%s”, start a server with its weights on this machine.",
	"The same prompt with “%s” gets the same answer again.",
	"These sentences are fixed, except for “%s”.",
	"They arrive one word at a time, as those of a real model about “%s” would.",
}

// wished finds how long a prompt wants the answer to be, as in "Write 500 words about ships".
var wished = regexp.MustCompile(`\b(\d{1,4}) words\b`)

// compose returns the words of the answer to a prompt, each with the space before it, and why it ends. It has
// at most most words; an endless one has as many. It is as long as the prompt wants it to be.
func compose(prompt string, most int, endless bool) (words []string, reason string) {
	rng := rand.New(rand.NewPCG(hash(prompt), 0))
	from := significant(prompt)
	least := 0
	if found := wished.FindStringSubmatch(prompt); found != nil {
		least, _ = strconv.Atoi(found[1]) // four digits are a number
	}
	text := fmt.Sprintf("%s Words in your prompt: %d.", opening, len(strings.Fields(prompt)))
	for left := 3 + rng.IntN(3); ; left-- {
		for word := range strings.FieldsSeq(text) {
			if len(words) == most {
				return words, "length"
			}
			if len(words) > 0 {
				word = " " + word
			}
			words = append(words, word)
		}
		if left <= 0 && len(words) >= least && !endless {
			return words, "stop"
		}
		text = fmt.Sprintf(sentences[rng.IntN(len(sentences))], from[rng.IntN(len(from))])
	}
}

// significant returns the longer words of a text, at least one.
func significant(text string) (words []string) {
	for word := range strings.FieldsSeq(text) {
		word = strings.TrimFunc(word, func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) })
		if n := len([]rune(word)); n > 3 && n <= 24 {
			words = append(words, word)
		}
	}
	if words == nil {
		words = []string{"nothing"}
	}
	return words
}

func hash(text string) uint64 {
	h := fnv.New64a()
	_, _ = h.Write([]byte(text)) // it cannot fail
	return h.Sum64()
}

// dimensions is the length of an embedding.
const dimensions = 64

// embedding is the direction of the sum of the vectors of the words, so that texts with the same words are near.
func embedding(text string) []float32 {
	sum := make([]float64, dimensions)
	for word := range strings.FieldsSeq(strings.ToLower(text)) {
		rng := rand.New(rand.NewPCG(hash(word), 1))
		for i := range sum {
			sum[i] += rng.NormFloat64()
		}
	}
	length := 0.0
	for _, x := range sum {
		length += x * x
	}
	vector := make([]float32, dimensions)
	for i, x := range sum {
		vector[i] = float32(x / max(math.Sqrt(length), 1e-9))
	}
	return vector
}

func (s *Server) embed(w http.ResponseWriter, r *http.Request) {
	var q struct {
		Model    string `json:"model"`
		Input    texts  `json:"input"`
		Encoding string `json:"encoding_format"`
	}
	if !read(w, r, &q) {
		return
	}
	if len(q.Input) == 0 {
		refuse(w, http.StatusBadRequest, invalidRequest, "The request has no input.")
		return
	}
	data, count := make([]object, len(q.Input)), 0
	for i, text := range q.Input {
		count += len(strings.Fields(text))
		vector := embedding(text)
		data[i] = object{"object": "embedding", "index": i, "embedding": vector}
		if q.Encoding == "base64" {
			var raw []byte
			for _, x := range vector {
				raw = binary.LittleEndian.AppendUint32(raw, math.Float32bits(x))
			}
			data[i]["embedding"] = base64.StdEncoding.EncodeToString(raw)
		}
	}
	if q.Model == "" {
		q.Model = s.config.Name
	}
	s.count(func() { s.prompt += count })
	write(w, http.StatusOK, object{"object": "list", "model": q.Model, "data": data,
		"usage": object{"prompt_tokens": count, "total_tokens": count}})
}
