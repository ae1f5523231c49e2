// A client in another language, for the tests: `publish URL QUEUE` sends standard input with every property and
// every type of header, `get URL QUEUE` writes one message as JSON, each header with its type.
package main

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"os"
	"sort"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
)

func main() {
	connection, err := amqp.Dial(os.Args[2])
	check(err)
	defer connection.Close()
	channel, err := connection.Channel()
	check(err)
	if os.Args[1] == "publish" {
		publish(channel, os.Args[3])
	} else {
		get(channel, os.Args[3])
	}
}

func publish(channel *amqp.Channel, queue string) {
	body, err := io.ReadAll(os.Stdin)
	check(err)
	check(channel.Confirm(false))
	answer, err := channel.PublishWithDeferredConfirm("", queue, true, false, amqp.Publishing{
		Headers: amqp.Table{
			"bool": true, "byte": byte(200), "int8": int8(-5), "int16": int16(-300), "int32": int32(-70000),
			"int64": int64(1) << 40, "float32": float32(1.5), "float64": 1.1, "text": "é", "bytes": []byte{0, 255},
			"nothing": nil, "time": time.Unix(1772366405, 0), "decimal": amqp.Decimal{Scale: 2, Value: 1234},
			"list": []interface{}{int32(1), "a", nil}, "table": amqp.Table{"deep": amqp.Table{"tenth": 0.1}},
		},
		ContentType: "application/octet-stream", ContentEncoding: "gzip", DeliveryMode: 2, Priority: 7,
		CorrelationId: "c-1", ReplyTo: "answers", MessageId: "m-1", Timestamp: time.Unix(1772366405, 0),
		Type: "order.created", UserId: "guest", AppId: "checkout", Body: body,
	})
	check(err)
	if !answer.Wait() {
		log.Fatal("refused")
	}
}

func get(channel *amqp.Channel, queue string) {
	message, found, err := channel.Get(queue, true)
	check(err)
	if !found {
		log.Fatal("empty")
	}
	check(json.NewEncoder(os.Stdout).Encode(map[string]interface{}{
		"body": base64.StdEncoding.EncodeToString(message.Body), "headers": told(message.Headers),
		"content_type": message.ContentType, "content_encoding": message.ContentEncoding,
		"delivery_mode": message.DeliveryMode, "priority": message.Priority,
		"correlation_id": message.CorrelationId, "reply_to": message.ReplyTo, "message_id": message.MessageId,
		"timestamp": message.Timestamp.Unix(), "type": message.Type, "user_id": message.UserId,
		"app_id": message.AppId, "expiration": message.Expiration,
	}))
}

func told(headers amqp.Table) map[string]string {
	found := map[string]string{}
	for name, value := range headers {
		found[name] = text(value)
	}
	return found
}

func text(value interface{}) string {
	if table, is := value.(amqp.Table); is {
		names := []string{}
		for name := range table {
			names = append(names, name)
		}
		sort.Strings(names)
		whole := "table"
		for _, name := range names {
			whole += " " + name + "=" + text(table[name])
		}
		return whole
	}
	if moment, is := value.(time.Time); is {
		return fmt.Sprintf("time %d", moment.Unix())
	}
	return fmt.Sprintf("%T %v", value, value)
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}
