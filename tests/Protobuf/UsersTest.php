<?php

declare(strict_types=1);

namespace Weft\Tests\Protobuf;

use PHPUnit\Framework\TestCase;
use Weft\Protobuf\Codec;
use Weft\Protobuf\DecodingException;
use Weft\Protobuf\Descriptor\FileDescriptorSet;
use Weft\Protobuf\EncodingException;
use Weft\Protobuf\FileSet;
use Weft\Protobuf\InvalidSchemaException;
use Weft\Protobuf\Message;
use Weft\Tests\Protobuf\Generated\Api\GetUserRequest;
use Weft\Tests\Protobuf\Generated\Api\ListUserRequest;
use Weft\Tests\Protobuf\Generated\Api\User;
use Weft\Tests\Protobuf\Generated\Api\Users;

/** The messages of the users service, whose sizes on the wire are known. */
final class UsersTest extends TestCase
{
    public function testTheRequestOfUser228HasThreeBytes(): void
    {
        self::assertSame("\x08\xE4\x01", Codec::encode(new GetUserRequest(id: 228)));
    }

    public function testTheReplyOfGetHas42BytesAndComesBackAsItWas(): void
    {
        $user = new User(id: 228, email: 'dmitry.k@test.tld', name: 'Dmitry K.', rating: 228.53);
        $bytes = Codec::encode($user);

        self::assertSame(42, \strlen($bytes));
        self::assertEquals($user, Codec::decode(User::class, $bytes));
    }

    public function testTheTenRepliesOfListHave299Bytes(): void
    {
        $length = 0;
        for ($i = 0; $i < 10; $i++) {
            $length += \strlen(Codec::encode(new User(id: $i, email: "user{$i}@test", name: "User {$i}", rating: $i * 1.53)));
        }

        self::assertSame(299, $length);
    }

    public function testAMessageWithoutFieldsHasNoBytes(): void
    {
        self::assertSame('', Codec::encode(new ListUserRequest));
        self::assertEquals(new ListUserRequest, Codec::decode(ListUserRequest::class, ''));
    }

    public function testTextOfOneByteIsPhpsOwnAndIsNotReleased(): void
    {
        for ($i = 0; $i < 100; $i++) {
            self::assertSame('x', Codec::decode(User::class, "\x12\x01x")->email);
        }
    }

    public function testFieldsThatAreNotKnownTravelAlong(): void
    {
        $bytes = "\x08\x01" . "\x2A\x03new" . "\x33\x08\x07\x34";

        self::assertSame($bytes, Codec::encode(Codec::decode(User::class, $bytes)));
    }

    public function testTextThatIsNotUtf8IsRefusedBothWays(): void
    {
        try {
            Codec::encode(new User(email: "\xFF"));
            self::fail('encoded');
        } catch (EncodingException $e) {
            self::assertSame('Cannot encode api.User: field email (2) is not UTF-8; binary data needs the type bytes', $e->getMessage());
        }
        $this->expectException(DecodingException::class);
        $this->expectExceptionMessage('field email (2) of api.User: text that is not UTF-8');
        Codec::decode(User::class, "\x12\x01\xFF");
    }

    public function testTruncatedBytesNameTheField(): void
    {
        $this->expectException(DecodingException::class);
        $this->expectExceptionMessage('field email (2) of api.User: a length of 5 bytes is announced where 1 are left');
        Codec::decode(User::class, "\x12\x05a");
    }

    public function testAClassThatWasNotGeneratedIsRefused(): void
    {
        $this->expectException(InvalidSchemaException::class);
        $this->expectExceptionMessage('stdClass is not a generated message class');
        Codec::encode(new \stdClass);
    }

    public function testAMessageWhoseFileIsMissingNamesTheCommandThatGeneratesIt(): void
    {
        $message = new class implements Message {
            public static function typeName(): string
            {
                return 'greeter.Greeting';
            }

            public static function file(): string
            {
                return 'App\\GreeterFile';
            }
        };

        $this->expectException(InvalidSchemaException::class);
        $this->expectExceptionMessage('the class App\GreeterFile does not exist: `weft proto:generate` writes it beside the classes of the messages');
        Codec::encode($message);
    }

    public function testAServiceKnowsItsMethodsAndItsFile(): void
    {
        self::assertSame('api.Users', Users::SERVICE);
        self::assertSame(['get', GetUserRequest::class, User::class, false, false], Users::METHODS['Get']);
        self::assertSame(['list', ListUserRequest::class, User::class, false, true], Users::METHODS['List']);
        $set = Codec::decode(FileDescriptorSet::class, FileSet::encode(Users::FILE));
        self::assertSame('users.proto', $set->file[0]->name);
        self::assertSame('Users', $set->file[0]->service[0]->name);
    }
}
