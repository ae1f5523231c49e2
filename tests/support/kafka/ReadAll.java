import java.time.Duration;
import java.util.HexFormat;
import java.util.List;
import java.util.Map;
import java.util.stream.Collectors;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.header.Header;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;

/**
 * Prints the first records of a topic as the plain Java client sees them, one line each: partition, offset,
 * timestamp, type of the timestamp, key, value, then name and value of each header. Bytes are hexadecimal, "=" are
 * none of them, "-" is null.
 *
 * Arguments: address, topic, how many, and for how many seconds it looks for them.
 */
public class ReadAll {
    public static void main(String[] given) {
        int wanted = Integer.parseInt(given[2]);
        long end = System.nanoTime() + Duration.ofSeconds(Long.parseLong(given[3])).toNanos();
        Map<String, Object> settings = Map.of("bootstrap.servers", given[0], "enable.auto.commit", false);
        var bytes = new ByteArrayDeserializer();
        try (var consumer = new KafkaConsumer<byte[], byte[]>(settings, bytes, bytes)) {
            List<TopicPartition> partitions = consumer.partitionsFor(given[1]).stream()
                .map(each -> new TopicPartition(each.topic(), each.partition())).toList();
            consumer.assign(partitions);
            consumer.seekToBeginning(partitions);
            while (wanted > 0 && System.nanoTime() < end) {
                for (var record : consumer.poll(Duration.ofMillis(100))) {
                    if (wanted-- > 0) {
                        System.out.println(line(record));
                    }
                }
            }
        }
    }

    private static String line(ConsumerRecord<byte[], byte[]> record) {
        String headers = List.of(record.headers().toArray()).stream()
            .map(ReadAll::written).collect(Collectors.joining(" "));
        return String.join(" ", "" + record.partition(), "" + record.offset(), "" + record.timestamp(),
            record.timestampType().name, hex(record.key()), hex(record.value()), headers).strip();
    }

    private static String written(Header header) {
        return hex(header.key().getBytes(java.nio.charset.StandardCharsets.UTF_8)) + " " + hex(header.value());
    }

    private static String hex(byte[] bytes) {
        return bytes == null ? "-" : bytes.length == 0 ? "=" : HexFormat.of().formatHex(bytes);
    }
}
