import java.io.ByteArrayOutputStream;
import java.io.DataInputStream;
import java.io.DataOutputStream;
import java.io.EOFException;
import java.io.FileOutputStream;
import java.io.IOException;
import java.io.PrintStream;
import java.util.Arrays;

/**
 * Runs commands of a program one after another in this process.
 *
 * <p>A request on the standard input is a number of strings, and these: the working directory and the arguments. Each is
 * answered in the file ANSWERS with the exit status, the size of what was printed, and that. Integers have 4 bytes,
 * strings are those of DataInput. A program itself may write to the standard output now and then.
 */
public final class Resident {
    private Resident() {}

    /** A program, which returns an exit status. */
    public interface Program {
        int run(String folder, String[] arguments, PrintStream printed) throws Exception;
    }

    /** Run a program for each request, and end this process after the last. */
    public static void serve(Program program, String file) throws IOException {
        DataInputStream requests = new DataInputStream(System.in);
        try (DataOutputStream answers = new DataOutputStream(new FileOutputStream(file))) {
            while (true) {
                String[] command = new String[requests.readInt()];
                for (int each = 0; each < command.length; each++) {
                    command[each] = requests.readUTF();
                }
                ByteArrayOutputStream printed = new ByteArrayOutputStream();
                int status = run(program, command, new PrintStream(printed, true));
                answers.writeInt(status);
                answers.writeInt(printed.size());
                printed.writeTo(answers);
                answers.flush();
            }
        } catch (EOFException end) {
            Runtime.getRuntime().halt(0); // programs keep threads
        }
    }

    private static int run(Program program, String[] command, PrintStream printed) {
        try {
            return program.run(command[0], Arrays.copyOfRange(command, 1, command.length), printed);
        } catch (Throwable failure) {
            failure.printStackTrace(printed);
            return 1;
        } finally {
            printed.flush();
        }
    }
}
